// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The fields that servers add to the answer of an authenticated request, for the one who authenticated himself: the daemon.
enum Courtesies {
    /// Adds some of it, if the request carries credentials.
    static func add(to answer: inout ServerAnswer, for request: ServerRequest, using chance: inout Chance) {
        let mark = Simulation.secretMark
        let key = request.value("x-api-key").flatMap { $0.hasPrefix(mark) ? $0 : nil }
        guard let value = request.value("authorization") ?? key else { return }
        // Of Digest it is a proof that is looked at (RFC 7616 §3.5).
        if !value.hasPrefix("Digest "), chance.oneIn(4) {
            answer.fields.append(("Authentication-Info", "rspauth=\"\(mark)proof\""))
        }
        if chance.oneIn(4) { answer.fields.append(("WWW-Authenticate", "Basic realm=\"\(mark)realm\"")) }
    }
}
