// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Glibc
internal import Settings

/// Listeners of `countersign run`: at free ports of 127.0.0.1, for processes of this user only.
struct PrivateListeners {
    /// The listeners, for the daemon.
    let settings: [ListenerSettings]
    private let places: [RunVariable.Place]

    /// Makes one listener for each of the `places`.
    init(_ settings: Settings, for places: [RunVariable.Place]) {
        var known: [RunVariable.Place] = []
        for place in places where !known.contains(place) { known.append(place) }
        self.places = known
        self.settings = known.compactMap { place in
            let index = if case .listener(let index) = place { index } else { 0 }
            guard settings.listeners.indices.contains(index) else { return nil }
            var listener = settings.listeners[index]
            if case .upstream(let name) = place {
                listener.upstream = name
                listener.routes = []
                listener.callers.tokens = nil
            }
            listener.address = .tcp(host: "127.0.0.1", port: 0)
            listener.users = [.uid(getuid())]
            listener.answersAuthRequests = false
            listener.health = nil
            return listener
        }
    }

    /// Returns the address of `place`; `ports` are those of the listeners, in order.
    func address(of place: RunVariable.Place, _ ports: [UInt16]) -> String {
        guard let index = places.firstIndex(of: place), ports.indices.contains(index) else { return "" }
        return "http://127.0.0.1:\(ports[index])"
    }
}
