// SPDX-License-Identifier: Apache-2.0
// The type of a file follows from its name.
#include "http/messages/page.h"

#include <string.h>

#include "base/cleanup.h"

static const char page_name[] = "index.html";

static const struct {
    const char *end, *type;
} page_types[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
};

static const char *type_of_name(const char *name)
{
    const char *end = strrchr(name, '.');
    for (size_t i = 0; end && i < COUNT_OF(page_types); i++)
        if (strcmp(end, page_types[i].end) == 0)
            return page_types[i].type;
    return "application/octet-stream";
}

int http_page(struct request *q, struct reply *r, const struct embedded *files, struct err *err)
{
    const char *name = *q->name ? q->name : page_name;
    if (strcmp(q->name, page_name) == 0) // its links would lead nowhere
        return err_set(err, ERR_NOT_FOUND, "", "the web page is at /");
    for (const struct embedded *f = files; f->name; f++)
        if (strcmp(f->name, name) == 0) {
            reply_file(r, q, f, type_of_name(name));
            return 0;
        }
    return err_set(err, ERR_NOT_FOUND, "", "the web page has no file %s", name);
}
