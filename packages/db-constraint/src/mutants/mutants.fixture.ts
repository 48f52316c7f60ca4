import type { FaultName } from "../fault-points.ts";

/** A planted fault, and how it is found. */
export type Mutant = SimulatedMutant | TestedMutant;

interface PlantedFault {
	/** The rule that it breaks: of the protocol, of the start and the end of a server, or of what the controllers do. */
	readonly rule: string;
	/** The number of its fault points. Default: 1. */
	readonly places?: number;
}

/** A fault that the simulation finds. */
export interface SimulatedMutant extends PlantedFault {
	/** A seed that finds the fault. If it no longer does, other seeds are tried, which takes minutes. */
	readonly seed: number;
	/** Further options of the simulation. Default: none. */
	readonly options?: readonly string[];
}

/** A fault that no simulation of hundreds of seeds finds: a test does, which fails with it. */
export interface TestedMutant extends PlantedFault {
	readonly test: FindingTest;
}

/** The test that finds a fault. */
export interface FindingTest {
	/** Its file, in `src`. */
	readonly file: string;
	/** Its name, or the end of that with the names of what it is in. */
	readonly name: string;
}

/** All mutants. */
export const mutants: Readonly<Record<FaultName, Mutant>> = {
	"decide no without changing the guard": {
		rule: "A writer that established before a query was decided fails its commit.",
		seed: 8,
	},
	"decide yes, CASCADE without changing the guard": {
		rule: "A writer that adds a BLOCK reference before a query was decided fails its commit.",
		seed: 79,
	},
	"read the guard after establishing": {
		rule: "A writer reads the guard before it establishes.",
		seed: 357,
	},
	"put a source on a new shadow": {
		rule: "A target without a shadow first gets an empty one, so that the numbers of establishments grow.",
		test: {
			file: "protocol/schema-mixin-service.test.ts",
			name: "establishes later than the shadow of the target was created: a commit that creates it could not know what was there before",
		},
	},
	"establish by versions that are not served": {
		rule: "A new reference of a user names a version that the target's deployment serves.",
		seed: 76,
	},
	"establish without recording the types": {
		rule: "An establishment records the types by which it references its targets.",
		seed: 189,
	},
	"drop versions that other deployments reference": {
		rule: "A schema that lacks versions in use does not become active.",
		seed: 101,
	},
	"drop a source without compare-and-swap": {
		rule: "A source is dropped from the shadow that was read before the query.",
		seed: 538,
	},
	"drop on expiry without a query": {
		rule: "A tentative source is dropped only if its deployment responds with no.",
		seed: 8,
	},
	"drop a source that is absent from the registry view": {
		rule: "Only the permanent record of its deletion releases on behalf of a deployment.",
		seed: 118,
	},
	"drop the own source outside CHECKING": {
		rule: "Only a deletion drops the source of the own deployment.",
		seed: 18,
	},
	"announce CHECKING": {
		rule: "Only what is irrevocably being deleted is announced.",
		seed: 6,
	},
	"revert DELETING": {
		rule: "DELETING is irrevocable.",
		seed: 0,
		places: 2,
	},
	"leave a check of a crashed server CHECKING": {
		rule: "A check that has taken too long ends.",
		seed: 3,
	},
	"mark without making the shadow DELETING": {
		rule: "The mark of a resource and DELETING of its shadow are committed together.",
		seed: 10,
	},
	"act on a deletion by name instead of uid": {
		rule: "What acts on a deletion names the incarnation.",
		test: {
			file: "controller/subscribed-deleting-handler.test.ts",
			name: "leaves what references the next incarnation of a deleted resource, if it learns of the deletion late",
		},
	},
	"count references of resources that are irrevocably deleted": {
		rule: "A resource whose deletion is irrevocable holds nothing.",
		seed: 167,
	},
	"still enforce BLOCK in a marked namespace": {
		rule: "BLOCK acts like CASCADE in a namespace that is being deleted.",
		seed: 336,
	},
	"remove the last owner reference before deleting": {
		rule: "A resource is deleted with its last owner reference, in one commit.",
		seed: 6,
	},
	"treat not known as not valid": {
		rule: "An owner that is not known to be deleted is kept.",
		seed: 261,
	},
	"accept the deletions of this deployment alone": {
		rule: "The rules of references are applied to deletions in other deployments.",
		seed: 3,
	},
	"retry a waiting deletion with each change of its name": {
		rule: "A deletion that waits is not tried before it is due.",
		test: {
			file: "lab/waiting-deletions.test.ts",
			name: "are not tried with each change of a resource that has the name of their target",
		},
	},
	"never free a slot of the limiter": {
		rule: "A pass gives back its slots when it ends.",
		seed: 1,
	},
	"put names of shadows without waking their reader": {
		rule: "A shadow that is queued gets a pass.",
		seed: 3,
	},
	"forget when a shadow is due again": {
		rule: "A shadow with work left gets another pass.",
		seed: 2,
	},
	"control shadows only until the version is switched": {
		rule: "The controllers of the next version start once those of the last one have stopped.",
		seed: 40,
	},
	"begin a schema without making it the active one": {
		rule: "A server makes its schema the active one before its first commit.",
		seed: 0,
	},
	"complete the schema in one attempt": {
		rule: "Steps of a start that fail are tried again.",
		seed: 33,
	},
	"serve before the other deployments are known": {
		rule: "A server takes writes once it knows the other deployments.",
		seed: 0,
	},
	"respond to calls that are meant for another deployment": {
		rule: "A call names the uid of the deployment that it is meant for.",
		seed: 85,
	},
	"leave a registration that arrived late": {
		rule: "A registration of a storage that it does not use is deleted.",
		seed: 630,
		options: ["--losses", "1"],
	},
	"leave the record of a server that has died": {
		rule: "Others remove the record of a server that has lost its lease.",
		seed: 2,
	},
	"remove the record of a server that runs": {
		rule: "The record of a server is removed only under its lease.",
		seed: 1,
	},
	"take the record of a server as it was a while ago": {
		rule: "A server that starts reads its record with strong consistency.",
		seed: 14,
	},
	"stay registered at an address where no server runs": {
		rule: "A server of the deployment runs at the registered address.",
		seed: 3,
	},
	"report releases to each deployment once": {
		rule: "Each release is reported.",
		seed: 23,
	},
	"call the servers at one address as one": {
		rule: "A server knows the others of its deployment also if they announce the same address.",
		seed: 89,
	},
	"keep reports from the holder of the shard": {
		rule: "A report of a release that reaches another server is passed on to the holder of the shard.",
		seed: 53,
	},
	"count the report of a restored registry itself": {
		rule: "A restored registry is complete only once another deployment has reported.",
		places: 2,
		test: {
			file: "registry/restored-meta.test.ts",
			name: "is not complete when only a server of its own has reported",
		},
	},
	"foretell the deletion of what is blocked": {
		rule: "The plan of a deletion says what a block keeps.",
		seed: 70,
	},
	"foretell that what has lost its owners stays": {
		rule: "The plan of a deletion says what is deleted with its owners.",
		seed: 14,
	},
	"learn no servers from responses": {
		rule: "Responses name the servers of a deployment that run.",
		test: {
			file: "registry/balanced-transport.test.ts",
			name: "learns of them from the first response, and calls them in turns",
		},
	},
	"learn of shadows late without queueing them": {
		rule: "A shadow is queued when the index learns what it depends on: the registry may have changed since the last pass.",
		test: {
			file: "controller/concerned-shadows.test.ts",
			name: "a shadow that the index learns of after the registry has changed is queued",
		},
	},
	"prefer servers that do not respond to the registered address": {
		rule: "A list of servers that are gone does no harm that lasts.",
		test: {
			file: "registry/balanced-transport.test.ts",
			name: "opens a stream at the registered address soon if no running server responds, however long it pauses",
		},
	},
	"establish for callers that have gone": {
		rule: "An establishment whose caller has gone is not begun.",
		test: {
			file: "protocol/schema-mixin-service.test.ts",
			name: "does not begin what callers that have gone wanted to establish, and completes a commit in progress",
		},
	},
	"give one attempt the whole deadline": {
		rule: "A call does not wait for a server that hangs while another one may respond.",
		test: {
			file: "registry/balanced-transport.test.ts",
			name: "repeats at another one a call to a server that hangs, within its deadline, and avoids that server",
		},
	},
	"do not tell followers which servers run": {
		rule: "Those who follow a deployment are told which of its servers run.",
		seed: 203,
	},
	"learn no servers from other servers of the deployment": {
		rule: "The servers of a deployment share which servers of others run.",
		seed: 157,
	},
	"start only once a meta deployment responds": {
		rule: "A server starts with the registry view in its storage.",
		seed: 9,
	},
	"store no registry view": {
		rule: "A server keeps the registry view in its storage.",
		seed: 8,
	},
	"report to a successor in one attempt": {
		rule: "References are established with a successor until that succeeds.",
		seed: 2,
		options: ["--losses", "1"],
	},
	"report to a meta deployment that is recovering": {
		rule: "A deployment reports to a restored meta deployment once that names all that it has taken over.",
		test: {
			file: "succession/succession.test.ts",
			name: "is told nothing while it is recovering, as it may not name all that it has taken over yet",
		},
	},
	"report to one of several successors": {
		rule: "A deployment reports to a successor only while no other one is responsible for what that has taken over.",
		test: {
			file: "succession/succession.test.ts",
			name: "is told nothing if another deployment claims its predecessor before it would be, as that one may be deleted",
		},
	},
	"take references for established under another uid": {
		rule: "What was established under a uid that was given up is established again.",
		test: {
			file: "succession/succession.test.ts",
			name: "does not take what the next uid has established for its own",
		},
	},
	"commit under a uid that was given up": {
		rule: "What was established under a uid is committed before that is given up, or not at all.",
		test: {
			file: "succession/succession.test.ts",
			name: "does not commit what another server has established under a uid that was given up since",
		},
	},
	"take a report to a former uid for one to the next": {
		rule: "A report counts for the uid to which the references were established.",
		test: {
			file: "succession/succession.test.ts",
			name: "does not count a report to a uid that another server has given up",
		},
	},
	"receive no reports of releases": {
		rule: "The controllers receive reports of releases.",
		seed: 5,
	},
	"take a restored registry for a complete one": {
		rule: "A meta deployment that was restored is not complete.",
		seed: 97,
	},
	"complete a restored registry before all have reported": {
		rule: "A meta deployment that was restored is complete once every known deployment has reported.",
		test: {
			file: "registry/restored-meta.test.ts",
			name: "waits for a deployment that others know, and is not complete until it has reported",
		},
	},
	"complete a restored registry without any report": {
		rule: "A meta deployment that was restored is complete only once some deployment has reported.",
		seed: 97,
	},
	"register once with a restored registry": {
		rule: "A restored meta deployment that is complete is told once more what was announced.",
		test: {
			file: "registry/restored-meta.test.ts",
			name: "is registered with once more when it is complete, until that succeeds",
		},
	},
	"reference copies by BLOCK": {
		rule: "Nothing holds up the removal of a copy of a resource of another cluster.",
		test: {
			file: "lab/local-references.test.ts",
			name: "refuses a BLOCK reference to a copy of another cluster's resource, whose removal does not wait for it",
		},
	},
	"establish references to copies": {
		rule: "Only its own deployment references a copy of a resource of another cluster.",
		test: {
			file: "lab/foreign-references.test.ts",
			name: "refuses a reference to a copy of another cluster's resource, by every rule",
		},
	},
	"give a uid back once": {
		rule: "A deployment gives itself back to a meta deployment as long as that lacks it.",
		test: {
			file: "registry/registration-checks.test.ts",
			name: "gives it back again if a restore takes that back before it has registered again",
		},
	},
	"register under another uid than the one that is served": {
		rule: "A server that takes writes under a uid stops once another one has given that up.",
		test: {
			file: "registry/without-meta.test.ts",
			name: "stops once another server has registered under another uid, and leaves that alone",
		},
	},
	"announce a version that is no longer active": {
		rule: "A restored meta deployment is told the version of the active schema.",
		test: {
			file: "registry/restored-meta.test.ts",
			name: "keeps the version of the active schema, though a server with another one reports",
		},
	},
	"announce nothing when a schema is active again": {
		rule: "A server whose schema is active again announces its version, as the one that activated it may have died.",
		test: {
			file: "node/open-references.test.ts",
			name: "is registered again when a server that died has activated it",
		},
	},
	"leave a version that is registered already": {
		rule: "A server that replaces another schema writes its Deployment, so that no earlier announcement replaces it later.",
		test: {
			file: "node/open-references.test.ts",
			name: "is not replaced by another one whose announcement is on its way when it is activated again",
		},
	},
	"report only what this server has read": {
		rule: "A deployment reports to a restored meta deployment what any of its servers has stored.",
		seed: 10,
		options: ["--restore-meta"],
	},
	"remove what another server has stored": {
		rule: "What a server has never seen, it does not remove from what the deployment has stored of the registry.",
		test: {
			file: "registry/stored-view.test.ts",
			name: "keeps what a server has stored that another one has never seen",
		},
	},
	"forget what a restored registry lacks": {
		rule: "What a meta deployment lacks that was restored proves nothing.",
		test: {
			file: "registry/restored-meta.test.ts",
			name: "waits for a deployment that others know, and is not complete until it has reported",
		},
	},
	"forget the deletions that are reported": {
		rule: "Deployments that were deleted stay deleted after a restore of the meta deployment.",
		seed: 4,
		options: ["--losses", "1"],
	},
	"keep the deleted Deployments that a restore has brought back": {
		rule: "A restored meta deployment removes the Deployments that were deleted since the backup.",
		seed: 43,
		options: ["--losses", "1"],
	},
	"give up a uid that a restored registry lacks": {
		rule: "A deployment that starts keeps its uid if a restored meta deployment lacks it.",
		places: 2,
		seed: 25,
	},
	"give up a uid that an empty registry lacks": {
		rule: "A deployment gives up its uid only if the record of its deletion is read.",
		test: {
			file: "registry/restored-meta.test.ts",
			name: "takes back a deployment that registers before it has registered itself",
		},
	},
	"free one slot of a pass that has taken several": {
		rule: "A pass gives back the slots of all deployments that it waits for.",
		seed: 9,
	},
	"write without the fence of the shard": {
		rule: "What only passes write carries the fence of the shard.",
		seed: 0,
	},
	"keep the handlers of a former hold": {
		rule: "Passes write with the fence under which they run.",
		seed: 9,
	},
	"measure elapsed times from when a shard was gained": {
		rule: "Elapsed times continue when a shard moves.",
		seed: 23,
	},
	"apply a deletion after its deployment was dropped": {
		rule: "Nothing that a deployment has announced counts once it was dropped or taken over.",
		test: {
			file: "lab/running-predecessors.test.ts",
			name: "has no deletion applied once its successor was relied on, by a server that has not",
		},
	},
	"remove an owner after the deployment that decided was dropped": {
		rule: "Nothing that a deployment has decided counts once it was dropped or taken over.",
		test: {
			file: "lab/running-predecessors.test.ts",
			name: "does not decide about owners once its successor was relied on, by a server that has not",
		},
	},
	"believe a predecessor that an owner is valid": {
		rule: "Nothing that a deployment has said about owners counts once it was dropped or taken over.",
		test: {
			file: "lab/running-predecessors.test.ts",
			name: "does not make owners valid once its successor was relied on, by a server that has not",
		},
	},
	"record a holder that was dropped": {
		rule: "A deployment that was dropped holds no owners.",
		test: {
			file: "lab/lost-deployments.test.ts",
			name: "is not recorded as a holder of an owner, not even by a server that has not seen that",
		},
	},
	"record a late verdict about an owner": {
		rule: "An owner is recorded as valid only if this deployment has not released it since the query.",
		test: {
			file: "lab/meta-owners.test.ts",
			name: "deletes what was written again with an owner that was deleted before a late verdict",
		},
	},
	"try again at once to delete what has lost its owners": {
		rule: "What has lost its owners and can't be deleted is tried again after growing pauses.",
		test: {
			file: "lab/meta-owners.test.ts",
			name: "deletes what has lost its last owner after growing pauses while the storage has no room for that",
		},
	},
	"query the owner of an announced deletion once": {
		rule: "An owner whose deletion was announced is queried until its deployment responds.",
		test: {
			file: "lab/meta-owners.test.ts",
			name: "queries a valid owner whose deletion was announced until its deployment responds, after growing pauses",
		},
	},
	"drop a verdict while a deletion is being checked": {
		rule: "What is found out about an announced owner while the shadow is CHECKING is found out again later.",
		test: {
			file: "lab/meta-owners.test.ts",
			name: "deletes what an announced owner owned also if the verdict arrives while another deletion of it is checked",
		},
	},
	"give up an owner before all meta deployments were read": {
		rule: "An owner is not valid only if all deployments that may store it were queried.",
		test: {
			file: "controller/owner-query.test.ts",
			name: "an owner is not known to be deleted if the last meta deployment is read only during the query",
		},
	},
	"apply deletions only after the shadow of their name": {
		rule: "A pass over a shadow that fails does not hold up the deletions of other targets with its name.",
		test: {
			file: "lab/waiting-deletions.test.ts",
			name: "are applied while a reference of a resource with the name of their target can't be confirmed",
		},
	},
	"drop tasks while a deletion is being checked": {
		rule: "Nothing but the deletion that checks it changes a shadow that is CHECKING.",
		test: {
			file: "controller/lost-deployments.test.ts",
			name: "the tasks for a deleted deployment stay while a deletion is being checked, which needs the shadow unchanged",
		},
	},
	"give up an owner that no deployment is known to store": {
		rule: "An owner is not valid only if some deployment has said so.",
		test: {
			file: "controller/owner-query.test.ts",
			name: "an owner is not known to be deleted if no deployment is known that may store it",
		},
	},
	"leave states of shadows that change": {
		rule: "A restored deployment takes back that owners are valid also while others change the same shadows.",
		test: {
			file: "lab/inherited-owners.test.ts",
			name: "are queried again though another deployment changes the shadow of what they own meanwhile",
		},
	},
	"hold only owners that are recorded as valid": {
		rule: "An owner that a restore has lost is held also if the deployment of what it owns was restored.",
		test: {
			file: "lab/inherited-owners.test.ts",
			name: "are held if the deployment of what they own was restored before it could notice",
		},
	},
	"report to a successor that lacks holders of its owners": {
		rule: "A successor deletes no owner before the holders that its predecessor has confirmed have told it so.",
		test: {
			file: "lab/inherited-owners.test.ts",
			name: "are not deleted there before their holders have told it what they own",
		},
	},
	"forget the deployment of an owner when a flag changes": {
		rule: "Other flags of an owner reference do not undo that its owner was valid.",
		test: {
			file: "lab/inherited-owners.test.ts",
			name: "are held if users change a flag before the restore is noticed",
		},
	},
	"fill in the tenancy of an owner by its type alone": {
		rule: "An owner that is recorded keeps its name when a release no longer registers its type.",
		test: {
			file: "lab/meta-owners.test.ts",
			name: "keeps the full name of a recorded owner when a release no longer registers its type",
		},
	},
	"query a deployment that was taken over": {
		rule: "Once a successor was relied on, its predecessor is not queried.",
		test: {
			file: "lab/running-predecessors.test.ts",
			name: "is not queried by a server that lags, once its successor was relied on",
		},
	},
	"stay beside another restore of the backup": {
		rule: "Of two restores that register at the same time, one takes over from both.",
		test: {
			file: "registry/running-predecessors.test.ts",
			name: "look the same to all, and the one with the greater uid takes over from both",
		},
	},
	"lose the targets of changed rules between two commits": {
		rule: "A reference whose rule has changed keeps its target until it is established by the new rule.",
		test: {
			file: "schema/changed-rules.test.ts",
			name: "keep their targets between the commits of a pass",
		},
	},
	"lose the targets of changed rules in writes of users": {
		rule: "A reference whose rule has changed keeps its target when a user writes the resource.",
		test: {
			file: "schema/changed-rules.test.ts",
			name: "keep their targets when users write what the pass has not reached",
		},
	},
	"leave rules of an earlier schema without a task": {
		rule: "A rule of an earlier schema that a commit has left is replaced later.",
		test: {
			file: "schema/changed-rules.test.ts",
			name: "keep their targets between the commits of a pass",
		},
	},
	"end a derivation at targets that are being deleted": {
		rule: "A derivation ends once all that the shadow holds by rules of an earlier schema is recorded by the active one.",
		test: {
			file: "schema/changed-rules.test.ts",
			name: "are all recorded by the new rule once the pass has ended, though many targets are being deleted",
		},
	},
	"forget what was lost when a rule changes": {
		rule: "A reference without a target keeps what was lost, and the decision to keep it, also under another rule.",
		test: {
			file: "schema/changed-rules.test.ts",
			name: "keep what was lost, and the decision to keep it, if they have no target: a pass comes first",
		},
	},
	"continue a pass after another schema was active": {
		rule: "A pass of a schema replaces exactly the record that it has read.",
		test: {
			file: "schema/schema-pass.test.ts",
			name: "derives again what another schema has written while a server was stalled in its pass",
		},
	},
	"begin a schema without asserting the followers": {
		rule: "A schema becomes active only if no follower has come since they were read.",
		test: {
			file: "schema/dropped-types.test.ts",
			name: "is refused if another deployment has referenced it since the followers were read",
		},
	},
	"take the types of an earlier schema of a follower": {
		rule: "What an earlier schema of a follower references does not replace what a later one does.",
		test: {
			file: "schema/followers.test.ts",
			name: "are not changed by what an earlier schema of them has sent",
		},
	},
	"ignore later schemas of a follower that name the same types": {
		rule: "A schema of a follower is later than those before also if it references the same.",
		test: {
			file: "schema/followers.test.ts",
			name: "are not changed by it after a later schema has named the same types again",
		},
	},
	"forget the number of a follower that references nothing": {
		rule: "What a follower has referenced does not come back by a late message.",
		test: {
			file: "schema/followers.test.ts",
			name: "are not changed by it after a later schema references nothing",
		},
	},
	"refuse a watch whose number finds no room": {
		rule: "A watch of deletions begins also if the number of the follower's schema can't be stored.",
		test: {
			file: "schema/followers.test.ts",
			name: "may watch a deployment with a full storage that has recorded their types",
		},
	},
	"begin passes before the index has caught up": {
		rule: "Passes over a gained shard begin once the index has all that was committed before.",
		test: {
			file: "controller/db-constraint-controller.test.ts",
			name: "begins passes once its index has all that was committed before",
		},
	},
	"confirm all references that are established again": {
		rule: "A successor establishes its references again, however many one resource has.",
		test: {
			file: "succession/succession.test.ts",
			name: "establishes as many references of one resource as its shadow can hold",
		},
	},
	"name servers before the version that has them": {
		rule: "Servers of a deployment are named with the version of its storage at which they ran.",
		test: {
			file: "shadow/shadow-index.test.ts",
			name: "names the servers of a snapshot once it has the version of that",
		},
	},
	"ignore changes while an address is registered": {
		rule: "A server of the deployment runs at the registered address.",
		test: {
			file: "registry/registered-address.test.ts",
			name: "a server whose address is replaced before the response to its own write registers it again",
		},
	},
	"leave older servers in the storage": {
		rule: "Of the addresses of another deployment's servers, those that were named last are stored.",
		test: {
			file: "registry/stored-view.test.ts",
			name: "gets the newest list of servers back that a server has written before another one wrote an older",
		},
	},
	"establish again with whichever deployment is found": {
		rule: "A reference that is held is established again with the deployment that it records, or its successor.",
		test: {
			file: "lab/unrelated-deployments.test.ts",
			name: "gets no references that are held elsewhere when a server of their holder starts again",
		},
	},
	"establish changed rules with whichever deployment is found": {
		rule: "A reference that is held by the rule of an earlier schema is established with the deployment that it records, or its successor.",
		test: {
			file: "lab/unrelated-deployments.test.ts",
			name: "gets no references that are held elsewhere when a schema changes their rule (with the target)",
		},
	},
	"establish again elsewhere while a deployment is not known": {
		rule: "A deployment that was restored waits for a deployment that its references record, unless that was deleted.",
		test: {
			file: "lab/unrelated-deployments.test.ts",
			name: "gets none while the deployment that they record is not known",
		},
	},
	"look up all missing targets in a report": {
		rule: "A report to a successor needs no other deployment, in which a resource references targets that are missing.",
		test: {
			file: "lab/reports-to-successors.test.ts",
			name: "needs no other deployment, in which a reference of the resource has no target",
		},
	},
	"look up changed rules in writes": {
		rule: "A write needs no other deployment because a schema has changed the rule of another field.",
		test: {
			file: "lab/incomplete-schemas.test.ts",
			name: "controllers clear other fields: it is down",
		},
	},
	"take what another field has lost": {
		rule: "A decision of operators to keep a reference is about its field alone.",
		test: {
			file: "schema/changed-rules.test.ts",
			name: "are reported if another field of the resource has the same target, and is kept",
		},
	},
	"clear all fields with the target": {
		rule: "A deletion clears the fields that hold the target, not one that has lost it.",
		test: {
			file: "lab/shared-targets.test.ts",
			name: "is not cleared with the other one while a new schema is incomplete",
		},
	},
	"take the record of a field by its former rule": {
		rule: "What a field holds stays with its deployment if it gets the former rule of another field.",
		test: {
			file: "lab/held-in-two-deployments.test.ts",
			name: "keeps its deployment when its new rule is derived",
		},
	},
	"record a target once for each rule": {
		rule: "Each field keeps what it holds, also beside another one with the same target and rule.",
		test: {
			file: "lab/held-in-two-deployments.test.ts",
			name: "are recorded each, so that one of them is cleared though a schema has changed the rule of the other one",
		},
	},
	"establish what another field with the rule holds": {
		rule: "A field that names what another one with its rule holds needs no other deployment.",
		test: {
			file: "lab/fields-with-one-target.test.ts",
			name: "takes its record, though the deployment of the target is down",
		},
	},
	"know fields by their names": {
		rule: "A field that a new schema renames holds what it held.",
		test: {
			file: "lab/renamed-fields.test.ts",
			name: "holds its target when another field gets its former name",
		},
	},
	"know the fields of another version by their numbers": {
		rule: "A resource that is written in another version of its type holds what it held.",
		test: {
			file: "lab/changed-versions.test.ts",
			name: "keeps the decision about each field of one target, though they swap their numbers",
		},
	},
	"leave the rules of another version to a derivation": {
		rule: "A write in another version of a type establishes targets by the rules of that.",
		test: {
			file: "lab/changed-versions.test.ts",
			name: "establishes its targets by the rules of that",
		},
	},
	"take a corrected type for a moved one": {
		rule: "A reference whose wrong type is corrected is a new one.",
		test: { file: "lab/wrong-types.test.ts", name: "holds its target" },
	},
	"add to what a deleted deployment has stored": {
		rule: "What a write adds is established with the deployment that is found, also beside a reference to a deleted one.",
		test: {
			file: "lab/lost-deployments.test.ts",
			name: "is established with the deployment that is found",
		},
	},
	"look up the targets of all deployments together": {
		rule: "A target is found again though another missing one can't be looked up.",
		test: {
			file: "lab/lost-targets.test.ts",
			name: "a target that was lost is found again though the deployment of another lost one is down",
		},
	},
	"count lookups for the deployment that makes them": {
		rule: "Lookups at a deployment that does not respond hold up no deletions elsewhere.",
		test: {
			file: "lab/silent-deployments.test.ts",
			name: "holds up no deletion in another one when its targets are looked up",
		},
	},
	"judge owners by an incomplete schema": {
		rule: "An owner is not valid only if its references are derived.",
		test: {
			file: "lab/incomplete-schemas.test.ts",
			name: "an owner that must reference what it owns is not known",
		},
	},
	"look up all changed rules in one write": {
		rule: "A write has room for what the resource references, however many rules an incomplete schema changes.",
		test: {
			file: "lab/incomplete-schemas.test.ts",
			name: "a user changes something else: 60 targets get another rule",
		},
	},
	"tell schemas apart by their rules alone": {
		rule: "A schema that finds references in other fields is another one, though it has the same rules.",
		test: {
			file: "lab/nested-references.test.ts",
			name: "a server without the field writes nothing beside one that has it",
		},
	},
	"forget what older servers have recorded for several fields": {
		rule: "A record of a server before revision 4 counts for all fields with its target and rule.",
		test: {
			file: "lab/older-records.test.ts",
			name: "holds it if a new schema drops the field that is named",
		},
	},
	"record wrong types as right ones": {
		rule: "A reference to a wrong type says nothing of one to the right type with the same name.",
		test: {
			file: "lab/wrong-types.test.ts",
			name: "is no reason not to establish one of the right type and the same name",
		},
	},
	"take fields that a write adds for those of before": {
		rule: "The target of a field that a write adds is established.",
		test: {
			file: "lab/fields-with-one-target.test.ts",
			name: "holds its target, though another one of its rule has no record yet",
		},
	},
	"copy what another field has lost": {
		rule: "A new field has lost nothing.",
		test: {
			file: "lab/fields-with-one-target.test.ts",
			name: "is not what a new field has lost, which gets its rule",
		},
	},
	"take what another field holds": {
		rule: "A reference without a target does not take over what another field of the resource holds.",
		test: {
			file: "lab/shared-targets.test.ts",
			name: "takes no part in the deletion of the target, which the other one holds (CASCADE)",
		},
	},
	"take what another reference of the target holds": {
		rule: "A reference holds the incarnation and the deployment of its own record, whatever others to the same name hold.",
		test: {
			file: "lab/unrelated-deployments.test.ts",
			name: "hold what each of them records when one deployment is deleted, and the other one restored",
		},
	},
	"fail where the address of another server is malformed": {
		rule: "What is malformed in the registry stops no server.",
		test: {
			file: "registry/malformed-addresses.test.ts",
			name: "stops nobody, is unknown until the address is corrected, and is followed then",
		},
	},
	"follow a meta deployment at an address that was corrected": {
		rule: "A registry view is complete again once a malformed address of a meta deployment was corrected.",
		test: {
			file: "registry/malformed-addresses.test.ts",
			name: "is refused, and one that is stored can be deleted",
		},
	},
	"follow no deployment whose shard was gained": {
		rule: "The holder of the shard of a deployment's uid follows it.",
		test: {
			file: "schema/dropped-types.test.ts",
			name: "is refused for a deployment that follows it and references nothing yet",
		},
	},
	"ignore what was announced to the former holder": {
		rule: "A server that gains a shard continues the deletions that were announced before.",
		test: {
			file: "controller/db-constraint-controller.test.ts",
			name: "continues the deletions that were announced while another one held them",
		},
	},
	"let deletions that meet a conflict wait as blocked ones": {
		rule: "A deletion that meets a conflict is tried again soon.",
		test: {
			file: "lab/waiting-deletions.test.ts",
			name: "of many targets that one resource references clear it one after the other, without growing pauses",
		},
	},
	"keep deletions that wait for ever": {
		rule: "Deletions that wait make room for others.",
		test: {
			file: "lab/waiting-deletions.test.ts",
			name: "do not hold up others, however many they are",
		},
	},
	"wait for a change after a conflict": {
		rule: "A pass whose commit meets a conflict is repeated.",
		test: {
			file: "lab/lost-deployments.test.ts",
			name: "are cleared and reported although users write what has them at the same time",
		},
	},
	"forget a report of a release during a query": {
		rule: "A deletion continues at once when a holder reports a release, also while it queries the holders.",
		test: {
			file: "controller/owned-deleting-handler.test.ts",
			name: "queries again at once if a release is reported while it waits for the response of the holder",
		},
	},
	"forget a change of the registry during a lookup": {
		rule: "A missing target is looked up at once when the registry changes, also during a lookup.",
		test: {
			file: "controller/owned-pending-handler.test.ts",
			name: "looks up a missing target again at once if the registry changes during a lookup",
		},
	},
	"forget deletions that wait": {
		rule: "A deletion that waits is tried again.",
		test: {
			file: "lab/waiting-deletions.test.ts",
			name: "continue when what blocks a cascade is removed, of the same deployment and of others",
		},
	},
	"forget a meta server that is down": {
		rule: "A server of a meta deployment is known as one of it after a restart, though it is down.",
		test: {
			file: "registry/meta-servers.test.ts",
			name: "lets a deployment that was restored once delete, though the registered one of them is down when it starts again",
		},
	},
	"compare versions of different meta deployments": {
		rule: "A deployment that has changed its meta deployment is found by its registration at the new one.",
		test: {
			file: "registry/changed-metas.test.ts",
			name: "a deployment that registers with another meta deployment is found at its new address",
		},
	},
	"look for the deployment of an owner that is recorded": {
		rule: "The deployment that has confirmed an owner judges it, whichever serves its type now.",
		test: {
			file: "lab/moved-groups.test.ts",
			name: "is judged by the deployment that has confirmed it",
		},
	},
	"record no holder before its owner is judged": {
		rule: "A successor records who holds an owner also before its schema is complete.",
		test: {
			file: "lab/incomplete-successors.test.ts",
			name: "a successor whose schema is incomplete knows the holders of its owners",
		},
	},
};

/** The names of all mutants. */
export const faultNames: readonly FaultName[] = Object.keys(mutants).filter(isFaultName);

/** Whether a mutant has this name. */
export function isFaultName(name: string): name is FaultName {
	return Object.hasOwn(mutants, name);
}
