// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// Kerberos tickets for Negotiate (RFC 4559), from the GSS-API library (RFC 2743, RFC 2744) that libcurl depends on. The
// library is looked up at run time, so that the program needs no library that libcurl does not need, and also runs with
// a libcurl without GSS-API.

#ifndef COUNTERSIGN_GSSAPI_H
#define COUNTERSIGN_GSSAPI_H

#include <dlfcn.h>
#include <gssapi/gssapi.h>
#include <gssapi/gssapi_ext.h>
#include <gssapi/gssapi_krb5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/// Functions of the library; all of them are set, or `library` is NULL.
struct cgss_library {
    void *library;
    __typeof__(&gss_import_name) import_name;
    __typeof__(&gss_release_name) release_name;
    __typeof__(&gss_acquire_cred_from) acquire_cred_from;
    __typeof__(&gss_acquire_cred_with_password) acquire_cred_with_password;
    __typeof__(&gss_release_cred) release_cred;
    __typeof__(&gss_init_sec_context) init_sec_context;
    __typeof__(&gss_delete_sec_context) delete_sec_context;
    __typeof__(&gss_display_status) display_status;
    __typeof__(&gss_release_buffer) release_buffer;
};

/// Status codes of a call; 0 is success.
struct cgss_status {
    unsigned major;
    unsigned minor;
    char text[400];
};

/// Credentials for one service, with which tokens are made.
struct cgss_ticket {
    struct cgss_library library;
    gss_cred_id_t credential;
    gss_name_t service;
};

/// Service, principal and the proof of a request. For NULL, GSS-API chooses.
struct cgss_request {
    const char *service;
    const char *principal;
    const char *keytab;
    const char *cache;
    const char *password;
    size_t password_length;
};

static gss_OID_desc cgss_spnego = {6, (void *)"\x2b\x06\x01\x05\x05\x02"};
static gss_OID_desc cgss_krb5 = {9, (void *)"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"};
static gss_OID_desc cgss_hostbased = {10, (void *)"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04"};
static gss_OID_desc cgss_principal_name = {10, (void *)"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01"};

static inline struct cgss_library cgss_open(void) {
    struct cgss_library it;
    memset(&it, 0, sizeof it);
    void *library = dlopen("libgssapi_krb5.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) return it;
    it.import_name = (__typeof__(it.import_name))dlsym(library, "gss_import_name");
    it.release_name = (__typeof__(it.release_name))dlsym(library, "gss_release_name");
    it.acquire_cred_from = (__typeof__(it.acquire_cred_from))dlsym(library, "gss_acquire_cred_from");
    it.acquire_cred_with_password =
        (__typeof__(it.acquire_cred_with_password))dlsym(library, "gss_acquire_cred_with_password");
    it.release_cred = (__typeof__(it.release_cred))dlsym(library, "gss_release_cred");
    it.init_sec_context = (__typeof__(it.init_sec_context))dlsym(library, "gss_init_sec_context");
    it.delete_sec_context = (__typeof__(it.delete_sec_context))dlsym(library, "gss_delete_sec_context");
    it.display_status = (__typeof__(it.display_status))dlsym(library, "gss_display_status");
    it.release_buffer = (__typeof__(it.release_buffer))dlsym(library, "gss_release_buffer");
    if (it.import_name && it.release_name && it.acquire_cred_from && it.acquire_cred_with_password && it.release_cred &&
        it.init_sec_context && it.delete_sec_context && it.display_status && it.release_buffer) {
        it.library = library;
    }
    return it;
}

/// The mechanism's own message, which describes the failure; GSS-API's is the same for every failure.
static inline void cgss_describe(const struct cgss_library *it, OM_uint32 major, OM_uint32 minor,
                                 struct cgss_status *status) {
    memset(status, 0, sizeof *status);
    status->major = major;
    status->minor = minor;
    OM_uint32 ignored, context = 0;
    gss_buffer_desc text = GSS_C_EMPTY_BUFFER;
    int is_told = minor != 0;
    if (it->display_status(&ignored, is_told ? minor : major, is_told ? GSS_C_MECH_CODE : GSS_C_GSS_CODE,
                           is_told ? &cgss_krb5 : GSS_C_NO_OID, &context, &text) == GSS_S_COMPLETE) {
        snprintf(status->text, sizeof status->text, "%.*s", (int)text.length, (const char *)text.value);
        it->release_buffer(&ignored, &text);
    }
}

static inline OM_uint32 cgss_import(const struct cgss_library *it, const char *text, gss_OID type, gss_name_t *name,
                                    OM_uint32 *minor) {
    gss_buffer_desc buffer = {strlen(text), (void *)text};
    return it->import_name(minor, &buffer, type, name);
}

static inline void cgss_release(struct cgss_ticket *ticket) {
    OM_uint32 ignored;
    if (ticket->credential != GSS_C_NO_CREDENTIAL) ticket->library.release_cred(&ignored, &ticket->credential);
    if (ticket->service != GSS_C_NO_NAME) ticket->library.release_name(&ignored, &ticket->service);
    free(ticket);
}

/// Makes one token for the service, of at most `size` bytes; `seconds` is the remaining lifetime of its ticket. Returns
/// its length, or -1. With a ticket that was used before, no server is asked. If the library keeps a context, it is in
/// `context` for `cgss_verify`, and must be released by `cgss_end`.
static inline long cgss_token(struct cgss_ticket *ticket, unsigned char *output, size_t size, gss_ctx_id_t *context,
                              unsigned *seconds, struct cgss_status *status) {
    const struct cgss_library *it = &ticket->library;
    gss_buffer_desc token = GSS_C_EMPTY_BUFFER;
    OM_uint32 minor = 0, ignored, lasts = 0;
    OM_uint32 major =
        it->init_sec_context(&minor, ticket->credential, context, ticket->service, &cgss_spnego, GSS_C_MUTUAL_FLAG, 0,
                             GSS_C_NO_CHANNEL_BINDINGS, GSS_C_NO_BUFFER, NULL, &token, NULL, &lasts);
    long length = -1;
    if (GSS_ERROR(major)) {
        cgss_describe(it, major, minor, status);
    } else if (token.length == 0 || token.length > size) {
        cgss_describe(it, GSS_S_FAILURE, 0, status);
    } else {
        memcpy(output, token.value, token.length);
        length = (long)token.length;
        *seconds = lasts;
    }
    if (token.value) it->release_buffer(&ignored, &token);
    return length;
}

/// Releases the context that `cgss_token` kept.
static inline void cgss_end(struct cgss_ticket *ticket, gss_ctx_id_t *context) {
    OM_uint32 ignored;
    if (*context != GSS_C_NO_CONTEXT) ticket->library.delete_sec_context(&ignored, context, GSS_C_NO_BUFFER);
}

/// Verifies the server's token, the last of a conversation that `cgss_token` began. Returns 1 if it proves that the
/// server has the service's key (GSS_C_MUTUAL_FLAG), else 0.
static inline int cgss_verify(struct cgss_ticket *ticket, gss_ctx_id_t *context, const void *input, size_t length,
                              struct cgss_status *status) {
    const struct cgss_library *it = &ticket->library;
    gss_buffer_desc received = {length, (void *)input};
    gss_buffer_desc token = GSS_C_EMPTY_BUFFER;
    OM_uint32 minor = 0, ignored, flags = 0;
    if (*context == GSS_C_NO_CONTEXT) {
        cgss_describe(it, GSS_S_NO_CONTEXT, 0, status);
        return 0;
    }
    OM_uint32 major = it->init_sec_context(&minor, ticket->credential, context, ticket->service, &cgss_spnego,
                                           GSS_C_MUTUAL_FLAG, 0, GSS_C_NO_CHANNEL_BINDINGS, &received, NULL, &token, &flags,
                                           NULL);
    if (token.value) it->release_buffer(&ignored, &token);
    if (major == GSS_S_COMPLETE && (flags & GSS_C_MUTUAL_FLAG)) return 1;
    cgss_describe(it, major == GSS_S_COMPLETE || !GSS_ERROR(major) ? GSS_S_FAILURE : major, minor, status);
    return 0;
}

/// Credentials of `mechanism` for `principal`.
static inline OM_uint32 cgss_acquire_for(const struct cgss_library *it, const struct cgss_request *request,
                                         gss_name_t principal, gss_OID mechanism, gss_cred_id_t *credential,
                                         OM_uint32 *minor) {
    gss_OID_set_desc mechanisms = {1, mechanism};
    if (request->password) {
        gss_buffer_desc password = {request->password_length, (void *)request->password};
        return it->acquire_cred_with_password(minor, principal, &password, GSS_C_INDEFINITE, &mechanisms, GSS_C_INITIATE,
                                              credential, NULL, NULL);
    }
    gss_key_value_element_desc elements[2];
    gss_key_value_set_desc store = {0, elements};
    if (request->keytab) elements[store.count++] = (gss_key_value_element_desc){"client_keytab", request->keytab};
    if (request->cache) elements[store.count++] = (gss_key_value_element_desc){"ccache", request->cache};
    return it->acquire_cred_from(minor, principal, GSS_C_INDEFINITE, &mechanisms, GSS_C_INITIATE,
                                 store.count ? &store : GSS_C_NO_CRED_STORE, credential, NULL, NULL);
}

/// Acquires credentials for a service; on failure returns NULL and sets `status`. Asks the KDC, and waits for its
/// answer.
static inline struct cgss_ticket *cgss_acquire(const struct cgss_request *request, struct cgss_status *status) {
    struct cgss_ticket *ticket = calloc(1, sizeof *ticket);
    if (!ticket) return NULL;
    ticket->library = cgss_open();
    const struct cgss_library *it = &ticket->library;
    if (!it->library) {
        memset(status, 0, sizeof *status);
        status->major = GSS_S_UNAVAILABLE;
        free(ticket);
        return NULL;
    }
    OM_uint32 minor = 0, ignored;
    gss_name_t principal = GSS_C_NO_NAME;
    gss_cred_id_t kerberos = GSS_C_NO_CREDENTIAL;
    // HTTP@host is a service on a host; a name with a slash is used as the name of a principal.
    OM_uint32 major = cgss_import(it, request->service,
                                  strchr(request->service, '/') ? &cgss_principal_name : &cgss_hostbased,
                                  &ticket->service, &minor);
    if (!GSS_ERROR(major) && request->principal) {
        major = cgss_import(it, request->principal, &cgss_principal_name, &principal, &minor);
    }
    // Kerberos itself comes first, because a failure of SPNEGO has no details. A wrong value has been sent once by
    // then.
    if (!GSS_ERROR(major)) major = cgss_acquire_for(it, request, principal, &cgss_krb5, &kerberos, &minor);
    if (!GSS_ERROR(major)) {
        major = cgss_acquire_for(it, request, principal, &cgss_spnego, &ticket->credential, &minor);
    }
    if (GSS_ERROR(major)) cgss_describe(it, major, minor, status);
    if (kerberos != GSS_C_NO_CREDENTIAL) it->release_cred(&ignored, &kerberos);
    if (principal != GSS_C_NO_NAME) it->release_name(&ignored, &principal);
    if (!GSS_ERROR(major)) return ticket;
    cgss_release(ticket);
    return NULL;
}

/// The library's words for a status.
static inline const char *cgss_text(const struct cgss_status *status) { return status->text; }

#endif
