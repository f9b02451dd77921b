// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/message.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

// NULL at the end of the text or of the head.
static char *next_line(char **rest)
{
    char *line = *rest, *end = line ? strchr(line, '\n') : NULL;
    *rest = end ? end + 1 : NULL;
    if (end)
        *end = '\0';
    if (end > line && end[-1] == '\r')
        end[-1] = '\0';
    return line;
}

static bool read_first(struct request *q, char *line)
{
    char *blank = line ? strchr(line, ' ') : NULL;
    if (!blank || !blank[1])
        return false;
    *blank = '\0';
    q->method = line;
    q->uri = strdup(blank + 1);
    fuzz_hold(q->uri != NULL);
    q->path = q->uri;
    return true;
}

bool message_read(struct message *m, const uint8_t *data, size_t size)
{
    *m = (struct message){.text = fuzz_text(data, size)};
    struct request *q = &m->q;
    char *rest = m->text;
    q->bound = "";
    if (!read_first(q, next_line(&rest)))
        return false;
    for (char *line; (line = next_line(&rest)) && *line;) {
        char *colon = strchr(line, ':');
        if (!colon || q->n_headers == HTTP_HEADERS_MAX)
            return false;
        *colon++ = '\0';
        q->headers[q->n_headers++] = (struct http_pair){line, colon + strspn(colon, " ")};
    }
    if (rest)
        buf_add(&q->body, rest, size - (size_t)(rest - m->text));
    return true;
}

void message_fini(struct message *m)
{
    buf_free(&m->q.body);
    free(m->q.uri);
    free(m->text);
}
