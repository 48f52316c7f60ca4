import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, onTestFinished, type TestContext } from "vitest";
import { EtcdClient } from "./client/etcd-client.ts";
import { createEtcdBackend, type EtcdBackend, type EtcdBackendOptions } from "./etcd-backend.ts";
import { EtcdProcess } from "./etcd-process.fixture.ts";
import { EtcdLeases } from "./leases/etcd-leases.ts";
import { TcpProxy } from "./tcp-proxy.fixture.ts";

/** The `onTestFinished` of a test's context. */
export type OnTestFinished = TestContext["onTestFinished"];

/**
 * The etcd of the tests of one `describe`. What a test opens through it closes when the test has finished; a
 * concurrent test passes the `onTestFinished` of its context.
 */
export interface TestEtcd {
	/** Its URL; available in tests and hooks. */
	readonly url: string;
	/** A new cluster of servers, under a prefix of its own. */
	cluster(finished?: OnTestFinished): TestCluster;
	/** A connection to etcd that can be cut or blocked. */
	proxy(finished?: OnTestFinished): Promise<TcpProxy>;
	/** Writes to etcd as no server of a cluster would. */
	client(): EtcdClient;
}

/** The servers of one cluster: each call opens one more. */
export interface TestCluster {
	readonly prefix: string;
	backend(options?: Partial<EtcdBackendOptions>): Promise<EtcdBackend>;
	leases(url?: string, ttlSeconds?: number): EtcdLeases;
}

/** Starts an etcd before the tests of this `describe`, and disposes of it after them. */
export function useEtcd(): TestEtcd {
	let etcd: EtcdProcess | undefined;
	beforeAll(async () => {
		etcd = await EtcdProcess.start();
	});
	afterAll(() => etcd?.dispose());
	const url = () => {
		if (etcd === undefined) {
			throw new Error("etcd runs only in tests and hooks");
		}
		return etcd.url;
	};
	return {
		get url() {
			return url();
		},
		cluster: (finished = onTestFinished) => clusterOf(url(), finished),
		async proxy(finished = onTestFinished) {
			const proxy = await TcpProxy.to(url());
			finished(() => proxy.dispose());
			return proxy;
		},
		client() {
			const client = new EtcdClient({ endpoints: [url()] });
			onTestFinished(() => client.close());
			return client;
		},
	};
}

function clusterOf(url: string, finished: OnTestFinished): TestCluster {
	const prefix = `/${randomUUID()}`;
	return {
		prefix,
		async backend(options = {}) {
			const backend = await createEtcdBackend({ endpoints: [url], prefix, ...options });
			finished(() => backend.close());
			return backend;
		},
		leases(throughUrl = url, ttlSeconds = 2) {
			const leases = new EtcdLeases({ endpoints: [throughUrl], prefix, ttlSeconds });
			finished(() => leases.close());
			return leases;
		},
	};
}
