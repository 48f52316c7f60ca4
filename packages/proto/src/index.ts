// The messages of backups, controllers, events, histories and leases have names of everyday use: import them from
// `@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js`, as are all of
// `plinth/agent/v1`, `plinth/backup/v1`, `plinth/cluster/v1`, `plinth/event/v1`, `plinth/history/v1`, `plinth/lease/v1`, `plinth/meta/v1`,
// `plinth/peering/v1`, `plinth/schema/v1` and `plinth/server/v1`.
export { BackupService } from "./gen/plinth/backup/v1/backup_service_pb.ts";
export { ControllerService } from "./gen/plinth/controller/v1/controller_service_pb.ts";
export { EventService } from "./gen/plinth/event/v1/event_service_pb.ts";
export { HistoryService } from "./gen/plinth/history/v1/history_service_pb.ts";
export { LeaseService } from "./gen/plinth/lease/v1/lease_service_pb.ts";
export * from "./gen/plinth/resource/v1/annotations_clone.ts";
export * from "./gen/plinth/resource/v1/annotations_pb.ts";
export * from "./gen/plinth/resource/v1/resource_clone.ts";
export * from "./gen/plinth/resource/v1/resource_pb.ts";
export * from "./gen/plinth/resource/v1/resource_service_clone.ts";
export * from "./gen/plinth/resource/v1/resource_service_pb.ts";
export * from "./gen/plinth/tenancy/v1/tenancy_clone.ts";
export * from "./gen/plinth/tenancy/v1/tenancy_pb.ts";
// The messages of table options have such names too: they are in
// `@plinth/proto/gen/plinth/type/v1/table_pb.js`.
export * from "./gen/plinth/type/v1/type_service_clone.ts";
export * from "./gen/plinth/type/v1/type_service_pb.ts";
