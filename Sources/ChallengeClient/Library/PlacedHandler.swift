// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// A registered handler of challenges of HTTP: everywhere, or a dispatcher, whose handlers stand where it says.
enum PlacedHandler {
    case dispatched(DispatchChallengeHandler)
    case everywhere(any ChallengeHandler, RegistrationNumber)

    /// The handler that was registered.
    var handler: any ChallengeHandler {
        switch self {
        case .dispatched(let dispatcher): dispatcher
        case .everywhere(let handler, _): handler
        }
    }

    /// Moves with every change of what stands where.
    var version: UInt64 { if case .dispatched(let dispatcher) = self { dispatcher.version } else { 0 } }

    /// The registrations that make a login each, at its pattern if it has one; of a dispatcher, the most specific pattern first.
    var registrations: [(handler: any ChallengeHandler, pattern: LocationPattern?, number: RegistrationNumber)] {
        switch self {
        case .dispatched(let dispatcher):
            dispatcher.registrations.map { ($0.registration.handler, $0.pattern, $0.registration.number) }
        case .everywhere(let handler, let number): [(handler, nil, number)]
        }
    }
}
