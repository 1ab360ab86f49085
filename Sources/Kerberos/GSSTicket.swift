// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CGSSAPI
internal import ChallengeHandling
internal import Secrets
internal import Synchronization

/// A ticket of the GSS-API library. The credential inside may be used by several threads at once (MIT krb5 locks it itself).
final class GSSTicket: Ticket {
    let lifetime: Int64
    private let handle: Handle

    /// Has the ticket given out; waits for the KDC.
    init(_ request: TicketRequest) throws(TicketError) {
        var status = cgss_status()
        let acquired = unsafe Self.withCStrings(request) { unsafe cgss_acquire($0, &status) }
        guard let acquired = unsafe acquired else { throw TicketError(status) }
        handle = unsafe Handle(ticket: acquired)
        var seconds: UInt32 = 0
        _ = try handle.token(&seconds)
        // Some say "for ever".
        lifetime = min(Int64(seconds), 7 * 86_400)
    }

    func token() throws(TicketError) -> [UInt8] {
        var seconds: UInt32 = 0
        return try handle.token(&seconds)
    }

    /// Owns the C side.
    @safe private final class Handle: @unchecked Sendable {
        /// The largest token: Active Directory writes a user's groups into its tickets.
        private static let limit = 64 * 1024
        private let ticket: UnsafeMutablePointer<cgss_ticket>

        init(ticket: UnsafeMutablePointer<cgss_ticket>) { unsafe self.ticket = ticket }

        deinit { unsafe cgss_release(ticket) }

        func token(_ seconds: inout UInt32) throws(TicketError) -> [UInt8] {
            var status = cgss_status()
            var isMade = false
            var lasts: UInt32 = 0
            let token = unsafe [UInt8](unsafeUninitializedCapacity: Self.limit) { output, count in
                let length = unsafe cgss_token(ticket, output.baseAddress, Self.limit, &lasts, &status)
                isMade = length > 0
                count = max(0, length)
            }
            guard isMade else { throw TicketError(status) }
            seconds = lasts
            return Array(token)
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
    /// What a status of GSS-API says of the credential, by the codes of Kerberos (RFC 4120 §7.5.9), which MIT krb5 counts from
    /// its error table's base.
    init(_ status: cgss_status) {
        var status = status
        let text = unsafe withUnsafePointer(to: &status) { unsafe String(cString: cgss_text($0)) }
        // KRB5KDC_ERR_NONE, where RFC 4120's numbers begin.
        let base: Int64 = -1_765_328_384
        switch Int64(Int32(bitPattern: status.minor)) - base {
        case 6, 24: self.init(.rejected, reason: text)  // C_PRINCIPAL_UNKNOWN, PREAUTH_FAILED
        case 18, 23: self.init(.locked, reason: text)  // CLIENT_REVOKED, KEY_EXPIRED
        case 31: self.init(.rejected, reason: text)  // a reply that the password does not decrypt
        case _ where status.major == UInt32(16) << 16:
            self.init(.unsupported, reason: "libgssapi_krb5.so.2 is not installed")
        default: self.init(.unknown, reason: text.isEmpty ? "GSS-API says \(status.major)" : text)
        }
    }
}
