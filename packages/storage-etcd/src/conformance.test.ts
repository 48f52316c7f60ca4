import { describeConformance } from "@plinth/storage/conformance";
import { describeWith } from "@plinth/test-support";
import { describe, it } from "vitest";
import { etcdHarness } from "./conformance.fixture.ts";
import { useEtcd } from "./use-etcd.fixture.ts";

describeWith("etcd")("on a real etcd", () => {
	// Few seeds: the deep tests run many. Concurrent, since most of the time a behavior waits for the storage.
	describeConformance("the etcd backend", etcdHarness(useEtcd()), {
		describe,
		it: it.concurrent,
		seeds: 2,
	});
});
