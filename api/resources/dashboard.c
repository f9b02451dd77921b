// SPDX-License-Identifier: Apache-2.0
// Files that are part of the program: the dashboard and the contract. The page is
// api/web/index.html at /, and refers to all other files as web/NAME. So it also works behind a
// proxy that puts the daemon below a path.
#include <string.h>

#include "api/resources/resources.h"
#include "base/cleanup.h"

extern const struct embedded web_files[], contract_files[];

static const char page_name[] = "index.html";

static const struct {
    const char *end, *type;
} file_types[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".json", "application/json"},
};

static const char *type_of_name(const char *name)
{
    const char *end = strrchr(name, '.');
    for (size_t i = 0; end && i < COUNT_OF(file_types); i++)
        if (strcmp(end, file_types[i].end) == 0)
            return file_types[i].type;
    return "application/octet-stream";
}

static int send_file(struct request *q, struct reply *r, const struct embedded *files,
                     const char *name, struct err *err)
{
    for (const struct embedded *f = files; f->name; f++)
        if (strcmp(f->name, name) == 0) {
            reply_file(r, q, f, type_of_name(name));
            return 0;
        }
    return err_set(err, ERR_NOT_FOUND, "", "the web page has no file %s", name);
}

int page_index(struct request *q, struct reply *r, struct err *err)
{
    return send_file(q, r, web_files, page_name, err);
}

int page_file(struct request *q, struct reply *r, struct err *err)
{
    if (strcmp(q->name, page_name) == 0) // its links would lead nowhere
        return err_set(err, ERR_NOT_FOUND, "", "the web page is at /");
    return send_file(q, r, web_files, q->name, err);
}

int openapi_get(struct request *q, struct reply *r, struct err *err)
{
    return send_file(q, r, contract_files, contract_files[0].name, err);
}
