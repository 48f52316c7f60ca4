import type { Fence, LeaseManager } from "@plinth/runtime";

/** Leases of a test server: `LocalLeases`, or others with the same operations. */
export interface TestLeases extends LeaseManager {
	/** Whether a write that carries the fence may be committed. */
	isCurrent(fence: Fence): boolean;
	/** Revokes the lease from its holder, or makes sure that it expires. */
	revoke(name: string): void;
}
