// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes

/// Finds a page that says LOGIN.
struct PageDetector: ChallengeDetector {
    let kind = "gateway"
    let filter = ResponseFilter.everything

    func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        guard response.fields[.contentType] == "text/html" else { return .pass }
        guard let body = response.body else { return .needsBody }
        return String(decoding: body, as: UTF8.self).contains("LOGIN") ? .challenged() : .pass
    }
}
