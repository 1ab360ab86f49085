// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CGSSAPI
internal import ChallengeHandling
internal import Secrets
internal import Synchronization

/// Ticket of the GSS-API library, usable by several threads at once (MIT krb5 has its own lock).
final class GSSTicket: Ticket {
    let lifetime: Int64
    private let handle: Handle

    /// Acquires the ticket; waits for the KDC.
    init(_ request: TicketRequest) throws(TicketError) {
        var status = cgss_status()
        let acquired = unsafe Self.withCStrings(request) { unsafe cgss_acquire($0, &status) }
        guard let acquired = unsafe acquired else { throw TicketError(status) }
        handle = unsafe Handle(ticket: acquired)
        var seconds: UInt32 = 0
        _ = try Handle.token(handle, &seconds)
        // Some tickets have an unlimited lifetime.
        lifetime = min(Int64(seconds), 7 * 86_400)
    }

    func token() throws(TicketError) -> TicketToken {
        var seconds: UInt32 = 0
        return try Handle.token(handle, &seconds)
    }

    /// Owner of the C object.
    @safe fileprivate final class Handle: @unchecked Sendable {
        /// Maximum size of a token: Active Directory writes a user's groups into its tickets.
        private static let limit = 64 * 1024
        fileprivate let ticket: UnsafeMutablePointer<cgss_ticket>

        init(ticket: UnsafeMutablePointer<cgss_ticket>) { unsafe self.ticket = ticket }

        deinit { unsafe cgss_release(ticket) }

        static func token(_ handle: Handle, _ seconds: inout UInt32) throws(TicketError) -> TicketToken {
            var status = cgss_status()
            var isMade = false
            var lasts: UInt32 = 0
            var raw: gss_ctx_id_t?
            let token = unsafe [UInt8](unsafeUninitializedCapacity: Self.limit) { output, count in
                let length = unsafe cgss_token(
                    handle.ticket, output.baseAddress, Self.limit, &raw, &lasts, &status)
                isMade = length > 0
                count = max(0, length)
            }
            let context = unsafe raw.map { unsafe GSSContext($0, of: handle) }
            guard isMade else { throw TicketError(status) }
            seconds = lasts
            return TicketToken(bytes: Array(token), context: context)
        }
    }

    /// Library state of one sent token, released with this object.
    @safe private final class GSSContext: TicketContext, @unchecked Sendable {
        private var context: gss_ctx_id_t?
        private let handle: Handle

        init(_ context: gss_ctx_id_t, of handle: Handle) {
            unsafe self.context = unsafe context
            self.handle = handle
        }

        deinit { unsafe cgss_end(handle.ticket, &context) }

        func verify(_ token: [UInt8]) throws(TicketError) {
            var status = cgss_status()
            let isRight = unsafe token.withUnsafeBytes { bytes in
                unsafe cgss_verify(handle.ticket, &context, bytes.baseAddress, bytes.count, &status)
            }
            guard isRight == 1 else { throw TicketError(status) }
        }
    }

    private static func withCStrings(
        _ request: TicketRequest, _ body: (UnsafePointer<cgss_request>) -> UnsafeMutablePointer<cgss_ticket>?
    ) -> UnsafeMutablePointer<cgss_ticket>? {
        func with(_ text: String?, _ body: (UnsafePointer<CChar>?) -> UnsafeMutablePointer<cgss_ticket>?)
            -> UnsafeMutablePointer<cgss_ticket>?
        {
            guard let text else { return unsafe body(nil) }
            return unsafe text.withCString { unsafe body($0) }
        }
        return unsafe with(request.service) { service in
            unsafe with(request.principal) { principal in
                unsafe with(request.keytab) { keytab in
                    unsafe with(request.cache) { cache in
                        var raw = unsafe cgss_request(
                            service: service, principal: principal, keytab: keytab, cache: cache, password: nil,
                            password_length: 0)
                        guard let password = request.password else { return unsafe body(&raw) }
                        return unsafe password.withBytes { bytes in
                            unsafe bytes.withUnsafeBytes { bytes in
                                unsafe raw.password = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
                                unsafe raw.password_length = bytes.count
                                return unsafe body(&raw)
                            }
                        }
                    }
                }
            }
        }
    }
}

extension TicketError {
    /// Maps a GSS-API status to the state of the credential.
    ///
    /// Uses the codes of Kerberos (RFC 4120 §7.5.9), which MIT krb5 counts from the base of its error table.
    init(_ status: cgss_status) {
        var status = status
        let text = unsafe withUnsafePointer(to: &status) { unsafe String(cString: cgss_text($0)) }
        // KRB5KDC_ERR_NONE, the base of RFC 4120's numbers.
        let base: Int64 = -1_765_328_384
        switch Int64(Int32(bitPattern: status.minor)) - base {
        case 6, 24: self.init(.rejected, reason: text)  // C_PRINCIPAL_UNKNOWN, PREAUTH_FAILED
        case 18, 23: self.init(.locked, reason: text)  // CLIENT_REVOKED, KEY_EXPIRED
        case 31: self.init(.rejected, reason: text)  // a reply that the password does not decrypt
        case _ where status.major == UInt32(16) << 16:
            self.init(.unsupported, reason: "libgssapi_krb5.so.2 is not installed")
        default: self.init(.unknown, reason: text.isEmpty ? "GSS-API status \(status.major)" : text)
        }
    }
}
