export * from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
