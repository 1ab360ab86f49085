// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import FoundationEssentials

// What Foundation's `localizedDescription` shows: programs with a user interface print nothing else.

extension CredentialError: LocalizedError {
    /// The reason.
    public var errorDescription: String? { reason }
}

extension LocationError: LocalizedError {
    /// The reason.
    public var errorDescription: String? { reason }
}

extension LoginFailure: LocalizedError {
    /// The detail.
    public var errorDescription: String? { detail }
}

extension LoginHelperError: LocalizedError {
    /// The reason.
    public var errorDescription: String? { reason }
}

extension PatternError: LocalizedError {
    /// The reason.
    public var errorDescription: String? { reason }
}

extension SideRequestError: LocalizedError {
    /// The reason.
    public var errorDescription: String? { reason }
}

extension StateError: LocalizedError {
    /// The reason.
    public var errorDescription: String? { reason }
}

extension TemplateError: LocalizedError {
    /// The reason.
    public var errorDescription: String? { reason }
}

extension TicketError: LocalizedError {
    /// The reason.
    public var errorDescription: String? { reason }
}
