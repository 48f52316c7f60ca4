export * from "@plinth/proto/gen/plinth/peering/v1/peering_record_clone.js";
