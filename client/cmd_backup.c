// SPDX-License-Identifier: Apache-2.0
// A copy of the daemon's database. FILE is there whole or not at all: it is written beside under
// another name, brought to disk, and then renamed.
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "client/commands.h"
#include "client/http.h"
#include "client/out_file.h"
#include "client/print.h"

struct backup_flags {
    bool force;
};

static const struct param backup_params[] = {
    {.name = "force",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct backup_flags, force),
     .def = "false",
     .help = "Replace FILE if it exists."},
};
const struct param_table backup_options = {backup_params, COUNT_OF(backup_params)};

// Whether what came begins as a database and is as long as that says.
static int check_database(int fd, int64_t *bytes, struct err *err)
{
    enum { HEADER = 100, AT_PAGE_SIZE = 16, AT_PAGES = 28 }; // sqlite.org/fileformat.html, 1.3
    unsigned char h[HEADER];
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(err, "cannot read the copy");
    if (pread(fd, h, sizeof h, 0) != HEADER || memcmp(h, "SQLite format 3", 16) != 0)
        return err_set(err, ERR_UNREACHABLE, "url", "the response is not an SQLite database");
    int64_t page = h[AT_PAGE_SIZE] << 8 | h[AT_PAGE_SIZE + 1];
    int64_t pages =
        (int64_t)h[AT_PAGES] << 24 | h[AT_PAGES + 1] << 16 | h[AT_PAGES + 2] << 8 | h[AT_PAGES + 3];
    if ((int64_t)st.st_size != pages * (page == 1 ? 65536 : page))
        return err_set(err, ERR_UNREACHABLE, "url", "the response is incomplete");
    *bytes = (int64_t)st.st_size;
    return 0;
}

static int cmd_backup_sync_folder(const char *path, struct err *err)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    CLEANUP_FD int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? err_sys(err, "%s", folder) : 0;
}

static int cmd_backup_fetch(struct cli *c, struct out_file *file, int64_t *bytes, struct err *err)
{
    CLEANUP_REPLY struct http_reply r = {0};
    int fd = fileno(file->file);
    if (http_download(c, "/v1/backup", fd, &r, err) < 0)
        return -1;
    if (r.status != 200)
        return http_problem(&r, err);
    if (check_database(fd, bytes, err) < 0)
        return -1;
    return fsync(fd) < 0 ? err_sys(err, "cannot write %.150s to disk", file->path) : 0;
}

int cmd_backup(struct cli *c, const struct invocation *i, struct err *err)
{
    const struct backup_flags *f = i->options;
    CLEANUP_OUT_FILE struct out_file file = {0};
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    char size[32];
    int64_t bytes = 0;
    struct stat st;
    if (print_refuse_csv(c, "what backup prints is", err) < 0)
        return -1;
    if (stat(i->operands[0], &st) == 0 && !S_ISREG(st.st_mode))
        return err_set(err, ERR_USAGE, "", "%.180s is not a regular file", i->operands[0]);
    if (out_file_open(&file, i->operands[0], 0600, f->force, err) < 0 ||
        cmd_backup_fetch(c, &file, &bytes, err) < 0 || out_file_keep(&file, err) < 0 ||
        cmd_backup_sync_folder(file.path, err) < 0)
        return -1;
    if (c->output == OUTPUT_TABLE) {
        str_rough_size((double)bytes, size, sizeof size);
        printf("%s: %s\n", i->operands[0], size);
        return 0;
    }
    jsonw_object(&w, NULL);
    jsonw_text(&w, "file", i->operands[0]);
    jsonw_i64(&w, "bytes", bytes);
    jsonw_end(&w);
    print_json_text(&text);
    return 0;
}
