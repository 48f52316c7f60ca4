import { randomUUID } from "node:crypto";
import { type Clock, systemClock, systemRandom, systemScheduler } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import type { HarnessFactory } from "@plinth/storage/conformance";
import { createEtcdBackend } from "./etcd-backend.ts";
import { EtcdLeases } from "./leases/etcd-leases.ts";
import type { TestEtcd } from "./use-etcd.fixture.ts";

/** How much longer a timer takes that no test advances, so that a busy machine changes no test. */
const slowness = 10;

/**
 * A clock that is advanced, and whose timers fire in real time too, slowly: a request that is on its way to etcd while the
 * clock is advanced may exceed its deadline, and is sent again after a pause that nobody advances.
 */
function alsoInRealTime(fake: FakeClock): Clock {
	const startMs = systemClock.monotonic();
	return {
		now: () => fake.now(),
		monotonic: () => fake.monotonic() + (systemClock.monotonic() - startMs) / slowness,
		setTimer(delayMs, callback) {
			const fire = () => {
				cancel();
				callback();
			};
			const timers = [fake.setTimer(delayMs, fire), systemClock.setTimer(delayMs * slowness, fire)];
			const cancel = () => {
				for (const timer of timers) {
					timer.cancel();
				}
			};
			return { cancel };
		},
	};
}

/** Creates storages in one etcd, under a prefix for each behavior of the conformance suite. */
export function etcdHarness(etcd: TestEtcd): HarnessFactory {
	return async ({ limits }) => {
		const fake = new FakeClock();
		const cluster = { endpoints: [etcd.url], prefix: `/${randomUUID()}` };
		const clock = alsoInRealTime(fake);
		const runtime = { clock, random: systemRandom, scheduler: systemScheduler };
		const backend = await createEtcdBackend({ ...cluster, runtime, limits });
		const leases = new EtcdLeases(cluster);
		return {
			backend,
			leases,
			elapse: (byMs) => fake.advanceAsync(byMs),
			dispose: async () => {
				await backend.close();
				await leases.close();
			},
		};
	};
}
