// SPDX-License-Identifier: Apache-2.0
// One run with everything about it, as text: what export writes and import reads
// (schema/json/run-1.json). api/whole.h tells the form.
#pragma once

#define WHOLE_FORMAT "numaprobe-run"
enum { WHOLE_VERSION = 1 }; // members may come; a change of meaning is a new version
