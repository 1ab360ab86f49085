// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@Suite("Private files of the unit, and root's commands beside it")
struct ServiceFileTests {
    @Test(
        "files in /etc reach the unit by LoadCredential=, and doctor and login work as root without taking anything from it"
    )
    func files() async throws {
        var scenario = SystemdScenario(limit: 100)
        scenario.configuration = Self.configuration
        scenario.files = [:]
        scenario.dropIn = """
            [Service]
            LoadCredential=secrets.env:/etc/countersign/secrets.env
            LoadCredential=keyring.key:/etc/countersign/keyring.key
            LoadCredential=client.key:/etc/countersign/client.key

            """
        try await scenario.run("private-files")
    }

    private static let configuration = """
        listeners:
          - address: systemd:countersign
            upstream: bank
            routes: [{ path: /ledger/, upstream: ledger }]
        upstreams:
          bank:
            url: http://127.0.0.1:8081/mfp/api/adapters/bank/
            mobilefirst: { application: com.sample.pincode, platform: android, version: "1.0" }
          ledger:
            url: https://ledger.invalid/
            tls: { certificate: /etc/countersign/client.pem, key: "${CREDENTIALS_DIRECTORY}/client.key" }
        credentials:
          sources:
            - { keyring: /var/lib/countersign/keyring, key-file: "${CREDENTIALS_DIRECTORY}/keyring.key" }
            - env: ${CREDENTIALS_DIRECTORY}/secrets.env
        challenges:
          - name: bank-pin
            upstream: bank
            security-check: PinCodeAttempts
            credential: bank-pin
            answer: { pin: "{pin}" }
          - name: ledger-key
            upstream: ledger
            inject: { X-Api-Key: "{key}" }
            credential: ledger-key

        """
}
