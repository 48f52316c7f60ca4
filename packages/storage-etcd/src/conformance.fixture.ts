import { randomUUID } from "node:crypto";
import { systemRandom, systemScheduler } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import type { HarnessFactory } from "@plinth/storage/conformance";
import { createEtcdBackend } from "./etcd-backend.ts";
import { EtcdLeases } from "./leases/etcd-leases.ts";
import type { TestEtcd } from "./use-etcd.fixture.ts";

/** Creates storages in one etcd, under a prefix for each behavior of the conformance suite. */
export function etcdHarness(etcd: TestEtcd): HarnessFactory {
	return async ({ limits }) => {
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
	};
}
