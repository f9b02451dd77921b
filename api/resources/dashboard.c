// SPDX-License-Identifier: Apache-2.0
// Files that are part of the program: the dashboard and the contract.
#include "api/resources/resources.h"
#include "http/messages/page.h"

extern const struct embedded web_files[], contract_files[];

int page_get(struct request *q, struct reply *r, struct err *err)
{
    return http_page(q, r, web_files, err);
}

int openapi_get(struct request *q, struct reply *r, struct err *err)
{
    (void)err;
    reply_file(r, q, &contract_files[0], "application/json");
    return 0;
}
