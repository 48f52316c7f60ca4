import { describeConformance } from "@plinth/storage/conformance";
import { describeWith, runs, seed } from "@plinth/test-support";
import { describe, it } from "vitest";
import { etcdHarness } from "./conformance.fixture.ts";
import { useEtcd } from "./use-etcd.fixture.ts";

describeWith("etcd")("on a real etcd", () => {
	describeConformance("the etcd backend", etcdHarness(useEtcd()), {
		describe,
		it: it.concurrent,
		seeds: runs(7),
		firstSeed: seed,
	});
});
