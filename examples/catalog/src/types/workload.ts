import { isIP } from "node:net";
import { defineType } from "@plinth/resource";
import { WorkloadSchema } from "../gen/catalog/v1/catalog_pb.ts";
import { checkPortName } from "./problems.ts";

const hostNamePattern =
	/^(?=.{1,253}$)[a-z\d]([a-z\d-]{0,61}[a-z\d])?(\.[a-z\d]([a-z\d-]{0,61}[a-z\d])?)*$/i;

/** One running program on a host. */
export const Workload = defineType(WorkloadSchema, {
	validate: ({ data }) => {
		if (data.host === "") {
			throw new Error("resource.data.host is required");
		}
		if (isIP(data.host) === 0 && !hostNamePattern.test(data.host)) {
			throw new Error(
				`resource.data.host invalid: "${data.host}" is neither a host name nor an address`,
			);
		}
		const ports = Object.entries(data.ports);
		if (ports.length === 0) {
			throw new Error("resource.data.ports is required");
		}
		for (const [name, port] of ports) {
			checkPortName("resource.data.ports", name);
			if (port < 1 || port > 65_535) {
				throw new Error(
					`resource.data.ports["${name}"] invalid: ${port} is not between 1 and 65535`,
				);
			}
		}
	},
});
