export * from "@plinth/proto/gen/plinth/backup/v1/backup_service_pb.js";
