// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Tree of values by a sequence of parts: labels of a host, segments of a path.
struct PartTree<Value> {
    fileprivate struct Node {
        var children: [String: Int] = [:]
        var value: Value
    }

    private let empty: Value
    private var nodes: [Node]

    /// Creates a tree whose root has the value `empty`, as every new node.
    init(empty: Value) {
        self.empty = empty
        nodes = [Node(value: empty)]
    }

    /// Returns the value of a node.
    subscript(node: Int) -> Value { nodes[node].value }

    /// Returns the node of `parts`, with all above it, from the root; fewer if the tree ends before the parts do.
    func nodes(along parts: some Sequence<String>) -> [Int] {
        var path = [0]
        var node = 0
        for part in parts {
            guard let child = nodes[node].children[part] else { break }
            path.append(child)
            node = child
        }
        return path
    }

    /// Changes the value at `parts`.
    mutating func update(_ parts: some Sequence<String>, _ change: (inout Value) -> Void) {
        var node = 0
        for part in parts {
            if let child = nodes[node].children[part] {
                node = child
                continue
            }
            nodes.append(Node(value: empty))
            nodes[node].children[part] = nodes.count - 1
            node = nodes.count - 1
        }
        change(&nodes[node].value)
    }

    /// Calls `body` with the values below a node, until it returns false. Returns whether it never did.
    func forEach(below node: Int, _ body: (Value) -> Bool) -> Bool {
        var open = Array(nodes[node].children.values)
        while let node = open.popLast() {
            guard body(nodes[node].value) else { return false }
            open += nodes[node].children.values
        }
        return true
    }
}

extension PartTree.Node: Sendable where Value: Sendable {}
extension PartTree: Sendable where Value: Sendable {}
