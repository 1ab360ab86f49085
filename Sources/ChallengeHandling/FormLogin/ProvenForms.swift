// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// The form of the first proven login of one challenge, with `url: form`: a later page may not send the credential elsewhere.
///
/// Kept for the life of the process. Shared by the upstreams of an origin, and kept over a reload.
public final class ProvenForm: Sendable {
    /// Where the form went, and what went along.
    struct Form: Sendable, Equatable {
        /// The path of its action, without parameters (`;jsessionid=…`).
        var path: String
        /// The names of its hidden inputs.
        var hidden: Set<String>
    }

    private let known = Mutex<Form?>(nil)

    /// None yet.
    public init() {}

    /// The form of the first proven login.
    var form: Form? { known.withLock { $0 } }

    /// Notes the form of a login that has worked, if it is the first.
    func note(_ form: Form) {
        known.withLock { known in
            if known == nil { known = form }
        }
    }
}

/// The proven forms of all login pages.
public final class ProvenForms: Sendable {
    private let known = Mutex<[LatchKey: ProvenForm]>([:])

    /// None yet.
    public init() {}

    /// The proven form of a challenge with a credential at an origin.
    public func form(of key: LatchKey) -> ProvenForm {
        known.withLock { known in
            if let there = known[key] { return there }
            let made = ProvenForm()
            known[key] = made
            return made
        }
    }
}
