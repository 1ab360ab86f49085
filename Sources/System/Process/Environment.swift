// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// The environment of this process.
package enum Environment {
    /// Present values of all variables.
    package static var all: [String: String] {
        var result: [String: String] = [:]
        var entry = unsafe environ
        while let line = unsafe entry.pointee {
            let text = unsafe String(cString: line)
            if let equals = text.firstIndex(of: "=") {
                result[String(text[..<equals])] = String(text[text.index(after: equals)...])
            }
            unsafe entry += 1
        }
        return result
    }

    /// Returns the present value of that variable; nil if it is not set.
    package static func value(of name: String) -> String? {
        guard let value = unsafe getenv(name) else { return nil }
        return unsafe String(cString: value)
    }

    /// Sets a variable. No other thread may read the environment meanwhile.
    package static func set(_ name: String, to value: String) { unsafe setenv(name, value, 1) }
}

/// The users of this machine.
package enum Users {
    /// Returns the uid of the user with that name, nil if there is no such user. Blocks; call it on one thread at a
    /// time.
    ///
    /// Throws if the lookup failed for a reason that may pass. Any other error means that there is no such user
    /// (getpwnam(3)).
    package static func uid(named name: String) throws(SystemError) -> UInt32? {
        errno = 0
        if let entry = unsafe getpwnam(name) { return unsafe entry.pointee.pw_uid }
        let error = SystemError.last
        if error.mayPass { throw error }
        return nil
    }
}
