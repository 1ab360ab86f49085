// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

#ifndef CHIREDIS_SHIM_H
#define CHIREDIS_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <hiredis/read.h>

/// Creates a reader that calls `functions` for each piece, with `owner` in the field `privdata` of each task.
static inline redisReader *_Nullable chiredis_reader(redisReplyObjectFunctions *_Nonnull functions,
                                                     void *_Nonnull owner) {
    redisReader *reader = redisReaderCreateWithFunctions(functions);
    if (reader) reader->privdata = owner;
    return reader;
}

/// Number of bytes that are buffered and not read yet.
static inline size_t chiredis_waiting(const redisReader *_Nonnull reader) {
    return reader->len - reader->pos;
}

/// Number of buffered bytes of an incomplete line, all of which the reader searches again whenever more arrive. A
/// string's length is such a line; its content is not.
static inline size_t chiredis_open_line(const redisReader *_Nonnull reader) {
    size_t waiting = reader->len - reader->pos;
    if (waiting == 0 || reader->ridx < 0) return 0;
    int type = reader->rstack[reader->ridx].type;
    if (type < 0) return 0;
    if (type == REDIS_REPLY_STRING && memchr(reader->buf + reader->pos, '\n', waiting < 32 ? waiting : 32)) return 0;
    return waiting;
}

/// True if the reader has stopped because of too deeply nested lists, which it reports only in its error text.
static inline bool chiredis_is_too_deep(const redisReader *_Nonnull reader) {
    return strstr(reader->errstr, "nested") != NULL;
}

#endif
