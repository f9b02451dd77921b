// SPDX-License-Identifier: Apache-2.0
// Files that are part of the program: the dashboard and the contract.
#include <string.h>

#include "api/resources/resources.h"

extern const struct embedded web_files[];

static int send_file(struct reply *r, const char *name, const char *type, struct err *err)
{
    for (const struct embedded *f = web_files; f->name; f++)
        if (strcmp(f->name, name) == 0) {
            r->file = f;
            r->status = 200;
            r->type = type;
            r->store = true;
            return 0;
        }
    return err_set(err, ERR_INTERNAL, "", "%s is not part of the program", name);
}

int page_index(struct request *q, struct reply *r, struct err *err)
{
    (void)q;
    return send_file(r, "index.html", "text/html; charset=utf-8", err);
}

int page_script(struct request *q, struct reply *r, struct err *err)
{
    (void)q;
    return send_file(r, "app.js", "text/javascript; charset=utf-8", err);
}

int page_style(struct request *q, struct reply *r, struct err *err)
{
    (void)q;
    return send_file(r, "style.css", "text/css; charset=utf-8", err);
}

int openapi_get(struct request *q, struct reply *r, struct err *err)
{
    (void)q;
    return send_file(r, "openapi.json", "application/json", err);
}
