// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Glibc
internal import Settings

/// The numbers of this machine's users.
enum UserNumbers {
    /// Those of `users`; `nil` is everybody. Throws where there is no such user.
    static func uids(_ users: [UserReference]?) throws(CompositionError) -> Set<UInt32>? {
        guard let users else { return nil }
        var result: Set<UInt32> = []
        for user in users { result.insert(try uid(of: user, for: "users")) }
        return result
    }

    /// That of `user`, whom `place` of the configuration names.
    static func uid(of user: UserReference, for place: String) throws(CompositionError) -> UInt32 {
        switch user {
        case .uid(let uid): return uid
        case .name(let name):
            guard let entry = unsafe getpwnam(name) else {
                throw CompositionError("\(place): there is no user \(name) on this machine")
            }
            return unsafe entry.pointee.pw_uid
        }
    }
}
