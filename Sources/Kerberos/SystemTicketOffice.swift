// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CGSSAPI
public import ChallengeHandling
internal import Secrets
internal import Synchronization

/// Kerberos tickets by the GSS-API library of the system.
///
/// libcurl speaks Negotiate, too, but with the one default credential of the process only, and it waits for the KDC on the
/// thread that all other requests are on. Here each challenge has its own credential, a thread of its own asks the KDC, and
/// a request costs a token from memory.
///
/// ```swift
/// NegotiateChallengeHandler(office: SystemTicketOffice { Thread.detachNewThread($0) })
/// ```
///
/// The library (`libgssapi_krb5.so.2`) is looked for when the first ticket is wanted; without it there are none.
public struct SystemTicketOffice: TicketOffice {
    /// A library that hangs has its thread for ever: so many may, and what is asked beyond them fails at once.
    private static let mostThreads = 16

    private let startThread: @Sendable (@escaping @Sendable () -> Void) throws -> Void
    private let threads = Threads()

    /// How many threads wait for the library.
    private final class Threads: Sendable {
        private let count = Mutex(0)

        func enter() -> Bool {
            count.withLock { count in
                guard count < SystemTicketOffice.mostThreads else { return false }
                count += 1
                return true
            }
        }

        func leave() { count.withLock { $0 -= 1 } }
    }

    /// An office that does what may block by `startThread`, which is to run what it is given on a thread of its own, or to throw
    /// where there can be none.
    public init(startThread: @escaping @Sendable (@escaping @Sendable () -> Void) throws -> Void) {
        self.startThread = startThread
    }

    /// A ticket, after its first token: the cache then holds the service's ticket, and no later token asks the KDC.
    public func ticket(_ request: TicketRequest) async throws(TicketError) -> any Ticket {
        guard threads.enter() else {
            throw TicketError(.unknown, reason: "\(Self.mostThreads) requests for tickets hang already")
        }
        let result: Result<any Ticket, TicketError> = await withCheckedContinuation { continuation in
            do {
                try startThread { [threads] in
                    let acquired = Self.acquire(request)
                    threads.leave()
                    continuation.resume(returning: acquired)
                }
            } catch {
                threads.leave()
                continuation.resume(returning: .failure(TicketError(.unknown, reason: "\(error)")))
            }
        }
        return try result.get()
    }

    private static func acquire(_ request: TicketRequest) -> Result<any Ticket, TicketError> {
        do throws(TicketError) {
            return .success(try GSSTicket(request))
        } catch {
            return .failure(error)
        }
    }
}
