// SPDX-License-Identifier: Apache-2.0
// GET /healthz of any program: it serves requests. It reads nothing.
#pragma once
#include "http/messages/router.h"

handler_fn http_alive;
