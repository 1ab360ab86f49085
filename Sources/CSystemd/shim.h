// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

#ifndef CSYSTEMD_SHIM_H
#define CSYSTEMD_SHIM_H

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>
#include <systemd/sd-login.h>

/// Gets the type of the job that the manager runs for the unit of this process (`stop`, `restart`), over the system
/// bus; empty without a job. Returns 0, or a negated error number without an answer within a second.
static inline int csystemd_job_type(char *_Nonnull type, size_t size) {
    static const char *const manager = "org.freedesktop.systemd1";
    char *unit = NULL, *path = NULL, *word = NULL;
    const char *job = NULL;
    uint32_t number = 0;
    sd_bus *bus = NULL;
    sd_bus_message *reply = NULL;
    if (size > 0) type[0] = 0;
    int result = sd_pid_get_unit(0, &unit);
    if (result >= 0) result = sd_bus_path_encode("/org/freedesktop/systemd1/unit", unit, &path);
    if (result >= 0) result = sd_bus_open_system(&bus);
    if (result >= 0) result = sd_bus_set_method_call_timeout(bus, 1000000);
    if (result >= 0)
        result = sd_bus_get_property(bus, manager, path, "org.freedesktop.systemd1.Unit", "Job", NULL, &reply, "(uo)");
    if (result >= 0) result = sd_bus_message_read(reply, "(uo)", &number, &job);
    if (result >= 0 && number != 0)
        result = sd_bus_get_property_string(bus, manager, job, "org.freedesktop.systemd1.Job", "JobType", NULL, &word);
    if (result >= 0 && word && strlen(word) < size) strcpy(type, word);
    free(word);
    free(path);
    free(unit);
    sd_bus_message_unref(reply);
    sd_bus_unref(bus);
    return result < 0 ? result : 0;
}

#endif
