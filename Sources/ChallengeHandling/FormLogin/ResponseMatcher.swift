// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes

/// Signs in a response, all of which must be there.
public struct ResponseMatcher: Sendable, Hashable {
    /// Any of these statuses; empty is every one.
    public var statuses: [Int]
    /// Fields that are there and, where text is given, contain it.
    public var fields: [FieldMatcher]
    /// Cookies that are set, by name; one that is removed is not.
    public var cookies: [String]
    /// Texts in the body, without regard to case; all of them.
    public var bodyContains: [String]
    /// Texts in the `Location` of a redirect, without regard to case; all of them.
    public var redirectTo: [String]
    /// Any of these media types; empty is the usual ones of pages, where the body is looked at.
    public var contentTypes: [String]
    /// How the path of a form's action ends, without regard to case: the forms of the page, not any text in it.
    public var formAction: String?
    /// Inputs that one form has all of, by name; the form of that action, where there is one.
    public var formFields: [String]
    /// A parameter in the query of a redirect's `Location`, and its whole value.
    public var redirectParameter: RedirectParameter?

    /// A parameter of a redirect.
    public struct RedirectParameter: Sendable, Hashable {
        /// Its name.
        public var name: String
        /// Its value.
        public var value: String

        /// A parameter.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// Signs; without any, every response matches.
    public init(
        statuses: [Int] = [], fields: [FieldMatcher] = [], cookies: [String] = [], bodyContains: [String] = [],
        redirectTo: [String] = [], contentTypes: [String] = [], formAction: String? = nil, formFields: [String] = [],
        redirectParameter: RedirectParameter? = nil
    ) {
        self.statuses = statuses
        self.fields = fields
        self.cookies = cookies
        self.bodyContains = bodyContains
        self.redirectTo = redirectTo
        self.contentTypes = contentTypes
        self.formAction = formAction
        self.formFields = formFields
        self.redirectParameter = redirectParameter
    }

    /// The media types in whose bodies texts and forms are looked for, where none are listed.
    static let pageTypes = ["text/html", "application/xhtml+xml"]

    /// Whether the body must be seen.
    public var looksAtBody: Bool { !bodyContains.isEmpty || formAction != nil || !formFields.isEmpty }
}

/// A field of a response.
public struct FieldMatcher: Sendable, Hashable {
    /// Its name.
    public var name: HTTPField.Name
    /// What it contains, without regard to case; `nil`: that it is there is enough.
    public var contains: String?

    /// A field.
    public init(name: HTTPField.Name, contains: String? = nil) {
        self.name = name
        self.contains = contains
    }
}

/// Evidence that a login failed.
public struct FailureMatcher: Sendable, Hashable {
    /// Why.
    public enum Cause: String, Sendable, CaseIterable {
        /// The account is locked.
        case locked
        /// The password must be changed first.
        case passwordExpired = "password-expired"
        /// Another login is refused while one stands.
        case tooManySessions = "too-many-sessions"
        /// The server cannot serve at the moment.
        case unavailable
        /// The credential is rejected.
        case wrongPassword = "wrong-password"
    }

    /// The signs.
    public var matcher: ResponseMatcher
    /// The cause.
    public var cause: Cause

    /// Evidence.
    public init(matcher: ResponseMatcher, cause: Cause) {
        self.matcher = matcher
        self.cause = cause
    }
}
