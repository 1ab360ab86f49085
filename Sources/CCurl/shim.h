// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// Variadic C functions cannot be called from Swift. Hence one function per type of argument of curl_easy_setopt,
// curl_easy_getinfo and curl_multi_setopt, so that the compiler checks the type, which C's `...` does not.

#ifndef CCURL_SHIM_H
#define CCURL_SHIM_H

#define CURL_STRICTER
#include <curl/curl.h>

// curl_easy_setopt

static inline CURLcode ccurl_set_long(CURL *_Nonnull easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_set_offset(CURL *_Nonnull easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}

/// libcurl copies the string; NULL resets the option.
static inline CURLcode ccurl_set_string(CURL *_Nonnull easy, CURLoption option, const char *_Nullable value) {
    return curl_easy_setopt(easy, option, value);
}

/// libcurl does not copy the list: it has to live as long as a transfer uses it.
static inline CURLcode ccurl_set_list(CURL *_Nonnull easy, CURLoption option, struct curl_slist *_Nullable value) {
    return curl_easy_setopt(easy, option, value);
}

/// libcurl does not copy the bytes: they have to live as long as the handle uses them. NULL resets the option.
static inline CURLcode ccurl_set_blob(
    CURL *_Nonnull easy, CURLoption option, const void *_Nullable bytes, size_t count) {
    struct curl_blob blob = {(void *)bytes, count, CURL_BLOB_NOCOPY};
    return curl_easy_setopt(easy, option, bytes ? &blob : NULL);
}

static inline CURLcode ccurl_set_pointer(CURL *_Nonnull easy, CURLoption option, void *_Nullable value) {
    return curl_easy_setopt(easy, option, value);
}

typedef size_t (*ccurl_bytes_function)(char *_Nullable, size_t, size_t, void *_Nullable);
typedef int (*ccurl_seek_function)(void *_Nullable, curl_off_t, int);
typedef int (*ccurl_prereq_function)(void *_Nullable, char *_Nullable, char *_Nullable, int, int);
typedef int (*ccurl_trailer_function)(struct curl_slist *_Nullable *_Nonnull, void *_Nullable);
typedef curl_socket_t (*ccurl_open_function)(void *_Nullable, curlsocktype, struct curl_sockaddr *_Nullable);
typedef int (*ccurl_close_function)(void *_Nullable, curl_socket_t);

/// CURLOPT_WRITEFUNCTION, CURLOPT_HEADERFUNCTION and CURLOPT_READFUNCTION.
static inline CURLcode ccurl_set_bytes_function(
    CURL *_Nonnull easy, CURLoption option, ccurl_bytes_function _Nonnull function) {
    return curl_easy_setopt(easy, option, function);
}

static inline CURLcode ccurl_set_seek_function(CURL *_Nonnull easy, ccurl_seek_function _Nonnull function) {
    return curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, function);
}

static inline CURLcode ccurl_set_prereq_function(CURL *_Nonnull easy, ccurl_prereq_function _Nonnull function) {
    return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, function);
}

/// NULL: no trailer fields.
static inline CURLcode ccurl_set_trailer_function(CURL *_Nonnull easy, ccurl_trailer_function _Nullable function) {
    return curl_easy_setopt(easy, CURLOPT_TRAILERFUNCTION, function);
}

typedef int (*ccurl_progress_function)(void *_Nullable, curl_off_t, curl_off_t, curl_off_t, curl_off_t);

static inline CURLcode ccurl_set_progress_function(
    CURL *_Nonnull easy, ccurl_progress_function _Nonnull function) {
    return curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, function);
}

static inline CURLcode ccurl_set_open_function(CURL *_Nonnull easy, ccurl_open_function _Nonnull function) {
    return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, function);
}

static inline CURLcode ccurl_set_close_function(CURL *_Nonnull easy, ccurl_close_function _Nonnull function) {
    return curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, function);
}

// curl_easy_getinfo

static inline CURLcode ccurl_get_long(CURL *_Nonnull easy, CURLINFO info, long *_Nonnull value) {
    return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode ccurl_get_offset(CURL *_Nonnull easy, CURLINFO info, curl_off_t *_Nonnull value) {
    return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode ccurl_get_socket(CURL *_Nonnull easy, CURLINFO info, curl_socket_t *_Nonnull value) {
    return curl_easy_getinfo(easy, info, value);
}

/// The string, which is libcurl's own, or NULL.
static inline const char *_Nullable ccurl_get_string(CURL *_Nonnull easy, CURLINFO info) {
    const char *value = NULL;
    return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : NULL;
}

/// Number of bytes that OpenSSL has decrypted on the connection of a running transfer and that libcurl has not read. 0
/// without TLS, and with another TLS library. `pending`: the address of OpenSSL's SSL_pending.
static inline int ccurl_tls_pending(CURL *_Nonnull easy, void *_Nonnull pending) {
    struct curl_tlssessioninfo *session = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || !session) return 0;
    if (session->backend != CURLSSLBACKEND_OPENSSL || !session->internals) return 0;
    return ((int (*)(const void *))pending)(session->internals);
}

/// OpenSSL's `SSL *` of the connection that the transfer runs on, or NULL.
static inline void *_Nullable ccurl_get_openssl(CURL *_Nonnull easy) {
    struct curl_tlssessioninfo *session = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || !session) return NULL;
    return session->backend == CURLSSLBACKEND_OPENSSL ? session->internals : NULL;
}

/// Certificates that the server has sent, or NULL. They belong to libcurl, until the next transfer.
static inline struct curl_certinfo *_Nullable ccurl_get_certificates(CURL *_Nonnull easy) {
    struct curl_certinfo *info = NULL;
    return curl_easy_getinfo(easy, CURLINFO_CERTINFO, &info) == CURLE_OK ? info : NULL;
}

/// The value that was set as CURLOPT_PRIVATE.
static inline void *_Nullable ccurl_get_private(CURL *_Nonnull easy) {
    char *value = NULL;
    return curl_easy_getinfo(easy, CURLINFO_PRIVATE, &value) == CURLE_OK ? value : NULL;
}

// curl_multi_setopt

typedef int (*ccurl_socket_function)(
    CURL *_Nullable, curl_socket_t, int, void *_Nullable, void *_Nullable);
typedef int (*ccurl_timer_function)(CURLM *_Nullable, long, void *_Nullable);

static inline CURLMcode ccurl_multi_set_long(CURLM *_Nonnull multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

/// Also sets the user data of the function.
static inline CURLMcode ccurl_multi_set_socket_function(
    CURLM *_Nonnull multi, ccurl_socket_function _Nonnull function, void *_Nullable data) {
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, data);
    return code != CURLM_OK ? code : curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, function);
}

/// Also sets the user data of the function.
static inline CURLMcode ccurl_multi_set_timer_function(
    CURLM *_Nonnull multi, ccurl_timer_function _Nonnull function, void *_Nullable data) {
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_TIMERDATA, data);
    return code != CURLM_OK ? code : curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, function);
}

/// The next transfer that has ended, or NULL. Reads the union of CURLMsg; libcurl never sends its other kinds.
static inline CURL *_Nullable ccurl_multi_next_done(CURLM *_Nonnull multi, CURLcode *_Nonnull result) {
    int left = 0;
    CURLMsg *message;
    while ((message = curl_multi_info_read(multi, &left))) {
        if (message->msg != CURLMSG_DONE) continue;
        *result = message->data.result;
        return message->easy_handle;
    }
    return NULL;
}

#endif
