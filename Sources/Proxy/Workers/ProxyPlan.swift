// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeClient

/// All that the proxy serves: what a reload replaces.
package struct ProxyPlan: Sendable {
    /// Where it listens, in order; each with what it lets in.
    package var points: [ListenPoint]
    /// The plans of the listeners, in the same order.
    package var listeners: [ListenerPlan]
    /// The upstreams.
    package var upstreams: [UpstreamPlan]
    /// Where access records go; `nil`: there are none.
    package var accessLog: (any AccessRecorder)?

    /// A plan.
    package init(
        listeners: [(point: ListenPoint, plan: ListenerPlan)], upstreams: [UpstreamPlan],
        accessLog: (any AccessRecorder)? = nil
    ) {
        self.accessLog = accessLog
        points = listeners.map(\.point)
        self.listeners = listeners.map(\.plan)
        self.upstreams = upstreams
    }
}
