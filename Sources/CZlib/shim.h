// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

#ifndef COUNTERSIGN_ZLIB_H
#define COUNTERSIGN_ZLIB_H

#include <string.h>
#include <zlib.h>

/// Inflates the beginning of `input`, which may be truncated, into `output`. `window_bits` as for inflateInit2, a macro
/// that Swift does not import. Returns the number of bytes written, or -1 after an error in the data.
static inline long countersign_inflate_beginning(const unsigned char *input, unsigned input_size, unsigned char *output,
                                                 unsigned output_size, int window_bits) {
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    if (inflateInit2(&stream, window_bits) != Z_OK) return -1;
    stream.next_in = (unsigned char *)input;
    stream.avail_in = input_size;
    stream.next_out = output;
    stream.avail_out = output_size;
    int status = inflate(&stream, Z_SYNC_FLUSH);
    long made = (long)(output_size - stream.avail_out);
    inflateEnd(&stream);
    return status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR ? made : -1;
}

#endif
