// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What an upstream is told of a caller's request besides its own fields, and what becomes of the caller's credentials.
package struct ForwardingPolicy: Sendable, Equatable {
    /// Which `Host` is sent (RFC 9110 §7.2).
    package enum Host: Sendable {
        /// The upstream's own authority.
        case upstream
        /// The caller's; where there is none, in HTTP/1.0, the upstream's.
        case pass
    }

    /// What becomes of a caller's own `Authorization`.
    package enum CallerCredentials: Sendable {
        /// It goes; a session's of the same name takes its place.
        case replace
        /// It goes, and no session's takes its place; nor is a challenge answered that it meets.
        case keep
        /// The request is refused.
        case refuse
    }

    /// How the caller is told to the upstream.
    package enum Caller: Sendable {
        /// Not at all; fields of that kind that the caller sends pass as they came.
        case none
        /// By `Forwarded` (RFC 7239), behind what is there.
        case forwarded
        /// By `X-Forwarded-For`, behind what is there, and by `-Proto` and `-Host`, in place of what is there.
        case xForwarded
    }

    /// Which `Host` is sent.
    package var host = Host.upstream
    /// What becomes of a caller's own `Authorization`.
    package var callerCredentials = CallerCredentials.replace
    /// How the caller is told to the upstream.
    package var caller = Caller.none

    /// The defaults of the configuration.
    package init(
        host: Host = .upstream, callerCredentials: CallerCredentials = .replace, caller: Caller = .none
    ) {
        self.host = host
        self.callerCredentials = callerCredentials
        self.caller = caller
    }
}
