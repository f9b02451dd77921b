// SPDX-License-Identifier: Apache-2.0
// The routes /v1/tokens, which every server has: make a token, list them, revoke one.
#pragma once
#include "http/messages/router.h"

handler_fn tokens_get, tokens_post, tokens_delete;
