/**
 * The faults that tests can plant in this package. Each breaks one rule of the protocol of references, or of what keeps
 * it going: `src/mutants` says which rule, and checks that the simulation finds the fault.
 */
export type FaultName =
	| "accept the deletions of this deployment alone"
	| "act on a deletion by name instead of uid"
	| "announce CHECKING"
	| "begin a schema without making it the active one"
	| "complete a restored registry before all have reported"
	| "complete a restored registry without any report"
	| "complete the schema in one attempt"
	| "control shadows only until the version is switched"
	| "count references of resources that are irrevocably deleted"
	| "decide no without changing the guard"
	| "decide yes, CASCADE without changing the guard"
	| "do not tell followers which servers run"
	| "drop a source that is absent from the registry view"
	| "drop a source without compare-and-swap"
	| "drop on expiry without a query"
	| "drop the own source outside CHECKING"
	| "drop versions that other deployments reference"
	| "establish by versions that are not served"
	| "establish without recording the types"
	| "forget the deletions that are reported"
	| "forget what a restored registry lacks"
	| "forget when a shadow is due again"
	| "free one slot of a pass that has taken several"
	| "give up a uid that a restored registry lacks"
	| "keep reports from the holder of the shard"
	| "keep the deleted Deployments that a restore has brought back"
	| "keep the handlers of a former hold"
	| "learn no servers from other servers of the deployment"
	| "learn no servers from responses"
	| "leave a check of a crashed server CHECKING"
	| "leave a registration that arrived late"
	| "leave the record of a server that has died"
	| "mark without making the shadow DELETING"
	| "measure elapsed times from when a shard was gained"
	| "never free a slot of the limiter"
	| "put a source on a new shadow"
	| "put names of shadows without waking their reader"
	| "read the guard after establishing"
	| "receive no reports of releases"
	| "remove the last owner reference before deleting"
	| "remove the record of a server that runs"
	| "report only what this server has read"
	| "report releases to each deployment once"
	| "report to a successor in one attempt"
	| "respond to calls that are meant for another deployment"
	| "retry a waiting deletion with each change of its name"
	| "revert DELETING"
	| "serve before the other deployments are known"
	| "start only once a meta deployment responds"
	| "stay registered at an address where no server runs"
	| "still enforce BLOCK in a marked namespace"
	| "store no registry view"
	| "take a restored registry for a complete one"
	| "take the record of a server as it was a while ago"
	| "treat not known as not valid"
	| "write without the fence of the shard";

/**
 * Whether a fault is planted: never here. `src/mutants` replaces this module in the processes that it starts. The build
 * removes this module, and at each fault point everything that only a fault needs.
 */
export function isPlanted(_fault: FaultName): boolean {
	return false;
}
