export * from "./gen/plinth/resource/v1/annotations_clone.ts";
export * from "./gen/plinth/resource/v1/annotations_pb.ts";
export * from "./gen/plinth/resource/v1/resource_clone.ts";
export * from "./gen/plinth/resource/v1/resource_pb.ts";
export * from "./gen/plinth/resource/v1/resource_service_clone.ts";
export * from "./gen/plinth/resource/v1/resource_service_pb.ts";
export * from "./gen/plinth/tenancy/v1/tenancy_clone.ts";
export * from "./gen/plinth/tenancy/v1/tenancy_pb.ts";
