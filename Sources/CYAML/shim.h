// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

#ifndef CYAML_SHIM_H
#define CYAML_SHIM_H

#include <stdbool.h>
#include <yaml.h>

// yaml_event_t has a union, every access to which Swift's strict memory safety would flag. These functions read it
// instead.

/// The text of a scalar; not terminated, see cyaml_scalar_length.
static inline const unsigned char *_Nullable cyaml_scalar_value(const yaml_event_t *_Nonnull event) {
    return event->data.scalar.value;
}

/// The number of bytes of a scalar's text.
static inline size_t cyaml_scalar_length(const yaml_event_t *_Nonnull event) {
    return event->data.scalar.length;
}

/// True if a scalar has no quotes and is not a block of text.
static inline bool cyaml_scalar_is_plain(const yaml_event_t *_Nonnull event) {
    return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

/// True if a mapping is written with braces.
static inline bool cyaml_mapping_is_flow(const yaml_event_t *_Nonnull event) {
    return event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
}

/// True if the node that the event begins has an anchor.
static inline bool cyaml_has_anchor(const yaml_event_t *_Nonnull event) {
    switch (event->type) {
    case YAML_SCALAR_EVENT: return event->data.scalar.anchor != NULL;
    case YAML_SEQUENCE_START_EVENT: return event->data.sequence_start.anchor != NULL;
    case YAML_MAPPING_START_EVENT: return event->data.mapping_start.anchor != NULL;
    default: return false;
    }
}

/// True if the node that the event begins has a tag.
static inline bool cyaml_has_tag(const yaml_event_t *_Nonnull event) {
    switch (event->type) {
    case YAML_SCALAR_EVENT: return event->data.scalar.tag != NULL;
    case YAML_SEQUENCE_START_EVENT: return event->data.sequence_start.tag != NULL;
    case YAML_MAPPING_START_EVENT: return event->data.mapping_start.tag != NULL;
    default: return false;
    }
}

#endif
