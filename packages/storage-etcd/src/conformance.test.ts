import { randomUUID } from "node:crypto";
import { systemRandom, systemScheduler } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { describeConformance } from "@plinth/storage/conformance";
import { describeWith } from "@plinth/test-support";
import { describe, it } from "vitest";
import { createEtcdBackend } from "./etcd-backend.ts";
import { EtcdLeases } from "./leases/etcd-leases.ts";
import { useEtcd } from "./use-etcd.fixture.ts";

describeWith("etcd")("on a real etcd", () => {
	const etcd = useEtcd();

	describeConformance(
		"the etcd backend",
		async ({ limits }) => {
			const clock = new FakeClock();
			const cluster = { endpoints: [etcd.url], prefix: `/${randomUUID()}` };
			const runtime = { clock, random: systemRandom, scheduler: systemScheduler };
			const backend = await createEtcdBackend({ ...cluster, runtime, limits });
			const leases = new EtcdLeases(cluster);
			return {
				backend,
				leases,
				elapse: (byMs) => clock.advanceAsync(byMs),
				dispose: async () => {
					await backend.close();
					await leases.close();
				},
			};
		},
		{ describe, it },
	);
});
