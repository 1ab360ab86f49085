// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// The environment of this process.
package enum Environment {
    /// All variables, as they are now.
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

    /// The variable of that name, as it is now; `nil` if there is none.
    package static func value(of name: String) -> String? {
        guard let value = unsafe getenv(name) else { return nil }
        return unsafe String(cString: value)
    }

    /// Sets a variable. No other thread may read the environment meanwhile.
    package static func set(_ name: String, to value: String) { unsafe setenv(name, value, 1) }
}

/// The users of this machine.
package enum Users {
    /// The uid of the user of that name; `nil` if there is none. Blocks, and is for one thread at a time.
    ///
    /// Throws if the look-up failed for a cause that may pass; any other error means that there is no such user (getpwnam(3)).
    package static func uid(named name: String) throws(SystemError) -> UInt32? {
        errno = 0
        if let entry = unsafe getpwnam(name) { return unsafe entry.pointee.pw_uid }
        let error = SystemError.last
        if error.mayPass { throw error }
        return nil
    }
}
