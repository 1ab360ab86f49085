// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CGSSAPI
public import ChallengeHandling
internal import Secrets
internal import Synchronization

/// Kerberos tickets from the system's GSS-API library.
///
/// libcurl implements Negotiate too, but only with the process's default credential, and it waits for the KDC on the
/// thread of all other requests. Here each challenge has its own credential, a separate thread asks the KDC, and a
/// request costs a token from memory.
///
/// ```swift
/// NegotiateChallengeHandler(office: SystemTicketProvider { Thread.detachNewThread($0) })
/// ```
///
/// The library (`libgssapi_krb5.so.2`) is loaded for the first ticket; without it there are no tickets.
public struct SystemTicketProvider: TicketProvider {
    /// Maximum of waiting threads: a library call that hangs blocks its thread forever. Further requests fail at once.
    private static let maximumThreads = 16

    private let startThread: @Sendable (@escaping @Sendable () -> Void) throws -> Void
    private let threads = Threads()

    /// Number of threads that wait for the library.
    private final class Threads: Sendable {
        private let count = Mutex(0)

        func enter() -> Bool {
            count.withLock { count in
                guard count < SystemTicketProvider.maximumThreads else { return false }
                count += 1
                return true
            }
        }

        func leave() { count.withLock { $0 -= 1 } }
    }

    /// Creates an office whose blocking calls run on threads of `startThread`.
    ///
    /// `startThread` must run the function on a new thread, or throw if none is available.
    public init(startThread: @escaping @Sendable (@escaping @Sendable () -> Void) throws -> Void) {
        self.startThread = startThread
    }

    /// Returns a ticket after its first token, so that later tokens come from the cache and not from the KDC.
    public func ticket(_ request: TicketRequest) async throws(TicketError) -> any Ticket {
        guard threads.enter() else {
            throw TicketError(.unknown, reason: "\(Self.maximumThreads) requests for tickets are already waiting")
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
