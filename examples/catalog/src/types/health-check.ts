import type { ID } from "@plinth/proto";
import { defineType, familyKey } from "@plinth/resource";
import {
	type HealthCheck as HealthCheckData,
	HealthCheckSchema,
} from "../gen/catalog/v1/catalog_pb.ts";
import { checkPortName } from "./problems.ts";
import { Workload } from "./workload.ts";

/** The defaults, in milliseconds. */
const defaultIntervalMs = 10_000;
const defaultTimeoutMs = 1_000;

/** The bounds of an interval, in milliseconds. Shorter intervals would be a load on the target. */
const minIntervalMs = 100;
const maxIntervalMs = 24 * 3_600_000;

/** A repeated probe of the workload that owns the check. */
export const HealthCheck = defineType(HealthCheckSchema, {
	mutate: ({ data }) => {
		data.intervalMs ||= defaultIntervalMs;
		data.timeoutMs ||= Math.min(defaultTimeoutMs, data.intervalMs);
		if (data.probe.case === "http") {
			data.probe.value.path ||= "/";
		}
	},
	validate: ({ resource, data }) => {
		checkOwner(resource.owner);
		checkProbe(data.probe);
		if (data.intervalMs < minIntervalMs || data.intervalMs > maxIntervalMs) {
			throw new Error(
				`resource.data.interval_ms invalid: ${data.intervalMs} is not between ${minIntervalMs} and ${maxIntervalMs}`,
			);
		}
		if (data.timeoutMs > data.intervalMs) {
			throw new Error(
				`resource.data.timeout_ms invalid: ${data.timeoutMs} is longer than the interval, ${data.intervalMs}`,
			);
		}
	},
});

function checkOwner(owner: ID | undefined): void {
	if (owner?.type === undefined || familyKey(owner.type) !== Workload.family) {
		throw new Error("resource.owner is required: the workload that the check probes");
	}
}

function checkProbe(probe: HealthCheckData["probe"]): void {
	switch (probe.case) {
		case "http":
			checkPortName("resource.data.http.port_name", probe.value.portName);
			if (!/^\/[!-~]*$/.test(probe.value.path)) {
				throw new Error(
					`resource.data.http.path invalid: "${probe.value.path}" is not a slash and printable ASCII`,
				);
			}
			break;
		case "tcp":
			checkPortName("resource.data.tcp.port_name", probe.value.portName);
			break;
		default:
			throw new Error("resource.data.http or resource.data.tcp is required");
	}
}
