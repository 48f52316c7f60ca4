package main

import (
	"crypto/rand"
	"strconv"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "plinth.dev/bench/build/gen/plinth/resource/v1"
)

// collectionKey names the resources of one type in one namespace.
type collectionKey struct{ group, kind, partition, namespace string }

// pendingEvents is how many events may wait for a watcher before its watch fails.
const pendingEvents = 1024

// watcher is one watch of a collection.
type watcher struct {
	events chan *pb.WatchEvent
}

// collection has the resources of a type in a namespace by name, and their watchers.
type collection struct {
	resources map[string]*pb.Resource
	watchers  map[*watcher]struct{}
}

// store is a map behind a lock. Stored messages are never changed.
type store struct {
	mutex       sync.RWMutex
	collections map[collectionKey]*collection
	version     uint64
}

func newStore() *store {
	return &store{collections: map[collectionKey]*collection{}}
}

func keyOf(resourceType *pb.Type, tenancy *pb.Tenancy) collectionKey {
	return collectionKey{
		group:     resourceType.GetGroup(),
		kind:      resourceType.GetKind(),
		partition: orDefault(tenancy.GetPartition()),
		namespace: orDefault(tenancy.GetNamespace()),
	}
}

func orDefault(unit string) string {
	if unit == "" {
		return "default"
	}
	return unit
}

// collectionFor must be called with the mutex locked for writing.
func (s *store) collectionFor(key collectionKey) *collection {
	found, ok := s.collections[key]
	if !ok {
		found = &collection{resources: map[string]*pb.Resource{}, watchers: map[*watcher]struct{}{}}
		s.collections[key] = found
	}
	return found
}

// read returns nil if there is no such resource.
func (s *store) read(id *pb.ID) *pb.Resource {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	if found, ok := s.collections[keyOf(id.GetType(), id.GetTenancy())]; ok {
		return found.resources[id.GetName()]
	}
	return nil
}

// list returns the resources in no order, with the version of the state that they are from.
func (s *store) list(key collectionKey) ([]*pb.Resource, string) {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	found, ok := s.collections[key]
	if !ok {
		return nil, formatVersion(s.version)
	}
	return valuesOf(found.resources), formatVersion(s.version)
}

// write stores the resource, which it owns from then on, and tells the watchers of its collection.
func (s *store) write(resource *pb.Resource, createOnly bool) (*pb.Resource, error) {
	id := resource.GetId()
	generation := rand.Text()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	target := s.collectionFor(keyOf(id.GetType(), id.GetTenancy()))
	stored, exists := target.resources[id.GetName()]
	if exists && createOnly {
		return nil, status.Errorf(codes.AlreadyExists, "%s exists", id.GetName())
	}
	if expected := resource.GetVersion(); expected != "" && expected != stored.GetVersion() {
		return nil, status.Errorf(codes.Aborted, "%s has version %s", id.GetName(), stored.GetVersion())
	}
	s.version++
	id.Uid = generation
	if exists {
		id.Uid = stored.GetId().GetUid()
	}
	resource.Version = formatVersion(s.version)
	resource.Generation = generation
	target.resources[id.GetName()] = resource
	target.broadcast(&pb.WatchEvent{
		Event:   &pb.WatchEvent_Upsert_{Upsert: &pb.WatchEvent_Upsert{Resource: resource}},
		Version: resource.Version,
	})
	return resource, nil
}

// broadcast ends the watches that have not kept up.
func (c *collection) broadcast(event *pb.WatchEvent) {
	for each := range c.watchers {
		select {
		case each.events <- event:
		default:
			delete(c.watchers, each)
			close(each.events)
		}
	}
}

// watch returns a watcher of the changes after the returned resources and version.
func (s *store) watch(key collectionKey) (*watcher, []*pb.Resource, string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	target := s.collectionFor(key)
	added := &watcher{events: make(chan *pb.WatchEvent, pendingEvents)}
	target.watchers[added] = struct{}{}
	return added, valuesOf(target.resources), formatVersion(s.version)
}

func (s *store) unwatch(key collectionKey, removed *watcher) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.collectionFor(key).watchers, removed)
}

func valuesOf(resources map[string]*pb.Resource) []*pb.Resource {
	values := make([]*pb.Resource, 0, len(resources))
	for _, each := range resources {
		values = append(values, each)
	}
	return values
}

func formatVersion(version uint64) string {
	return strconv.FormatUint(version, 10)
}
