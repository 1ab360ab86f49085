// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import SettingsReading

/// Settings of a login by a helper: `login: { exec: [PROGRAM] }` or `login: { socket: PATH }`.
package struct HelperLoginSettings: Sendable, Equatable {
    /// The helper.
    package var helper: LoginHelper
    /// Address that the helper opens; nil: the page that is found.
    package var page: AddressReference?

    /// Creates settings.
    package init(helper: LoginHelper, page: AddressReference? = nil) {
        self.helper = helper
        self.page = page
    }
}

extension HelperLoginSettings {
    private enum Keys {
        static let exec = Key(
            "exec", .command, without: "the daemon logs in",
            "Helper program that logs in where a page is built by scripts, and its arguments.")
        static let socket = Key(
            "socket", .file, without: "the daemon logs in",
            "Unix socket of such a helper, which runs in a separate unit.")
    }

    /// Keys of `challenges.login` that name a helper.
    static let keys: [any SchemaKey] = [Keys.exec, Keys.socket]

    /// Other keys of `challenges.login` that have a meaning with a helper.
    private static let common: Set<String> = ["when", "page", "timeout"]
    /// Maximum length of the path of a Unix socket (unix(7)).
    private static let longestPath = 107

    /// Returns true if `login` names a helper.
    static func isNamed(in login: Value) -> Bool {
        login.listOrOne().contains { $0.member(Keys.exec.name) != nil || $0.member(Keys.socket.name) != nil }
    }

    /// Reads a login by a helper, which has no other steps and no evidence in answers.
    static func read(_ login: Value, evidence: [Value?]) -> HelperLoginSettings? {
        let steps = login.listOrOne()
        guard let step = steps.first, steps.count == 1 else {
            login.report("a helper does the whole login: write it as the only step")
            return nil
        }
        guard let fields = step.fields(of: LoginStep.section) else { return nil }
        let own = common.union(keys.map(\.name))
        for key in LoginStep.section.names where !own.contains(key) {
            fields.written(named: key)?.report("has no effect with a helper, which does the whole login")
        }
        for value in evidence {
            value?.report("has no effect with a helper, which reports if the login worked")
        }
        let exec = fields[Keys.exec]
        let socket = fields[Keys.socket]
        if exec != nil, let written = fields.written(Keys.socket) {
            written.report("cannot be combined with `exec`")
            return nil
        }
        if let socket, socket.utf8.count > longestPath {
            fields.written(Keys.socket)?.report(
                "is longer than \(longestPath) bytes, the limit for the path of a socket")
            return nil
        }
        guard let reach = exec.map(LoginHelper.Reach.program) ?? socket.map(LoginHelper.Reach.socket) else {
            return nil
        }
        var settings = HelperLoginSettings(helper: LoginHelper(reach))
        settings.page = LoginStep.page(fields)
        if let timeout = LoginStep.writtenTimeout(fields) { settings.helper.timeout = timeout }
        return settings
    }

    /// Adds the helper, on which the session depends.
    func add(to terms: inout LoginTerms) {
        switch helper.reach {
        case .program(let command): terms.add("login.exec", command)
        case .socket(let path): terms.add("login.socket", path)
        }
        terms.add("login.page", page?.text)
    }
}
