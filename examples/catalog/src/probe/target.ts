import { isIP } from "node:net";
import type { HealthCheck, Workload } from "../gen/catalog/v1/catalog_pb.ts";

/** What to probe. */
export type ProbeTarget =
	| { readonly kind: "http"; readonly host: string; readonly port: number; readonly path: string }
	| { readonly kind: "tcp"; readonly host: string; readonly port: number };

/** The target of the check on its workload, or `undefined` if the workload has no such port. */
export function targetOf(check: HealthCheck, workload: Workload): ProbeTarget | undefined {
	const { probe } = check;
	const port = portOf(workload, probe.value?.portName ?? "");
	if (probe.case === undefined || port === undefined) {
		return undefined;
	}
	return probe.case === "http"
		? { kind: "http", host: workload.host, port, path: probe.value.path || "/" }
		: { kind: "tcp", host: workload.host, port };
}

/** The port with that name, or `undefined`. */
export function portOf(workload: Workload, name: string): number | undefined {
	return Object.hasOwn(workload.ports, name) ? workload.ports[name] : undefined;
}

/** The target as a URL, unique per target. */
export function addressOf(target: ProbeTarget): string {
	const host = isIP(target.host) === 6 ? `[${target.host}]` : target.host;
	return target.kind === "http"
		? `http://${host}:${target.port}${target.path}`
		: `tcp://${host}:${target.port}`;
}
