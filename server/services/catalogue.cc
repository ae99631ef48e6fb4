#include "server/services/catalogue.h"

#include "base/limits.h"
#include "base/status.h"
#include "store/store.h"

namespace assay {
namespace {

template <typename T>
std::shared_ptr<T> WithoutContents(const T& message) {
  auto copy = std::make_shared<T>();
  // Field by field would miss fields added later; files are few when they are not wanted.
  *copy = message;
  copy->clear_files();
  return copy;
}

}  // namespace

absl::Status Catalogue::Load(Store& store) {
  Page page;
  page.size = limits::kPageSizeMax;
  while (true) {
    auto listed = store.ListProblems(page);
    if (!listed.ok()) return Annotate(listed.status(), "loading the problems");
    for (const v1::Problem& problem : listed->items) Put(problem);
    if (listed->next.empty()) return absl::OkStatus();
    page.after = listed->next;
  }
}

std::shared_ptr<const v1::Problem> Catalogue::Find(std::string_view name) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto it = problems_.find(name);
  return it == problems_.end() ? nullptr : it->second;
}

void Catalogue::Put(const v1::Problem& problem) {
  std::shared_ptr<const v1::Problem> entry = WithoutContents(problem);
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<const v1::Problem>& known = problems_[problem.name()];
  if (known == nullptr || known->version() <= entry->version()) known = std::move(entry);
}

size_t Catalogue::size() const {
  absl::ReaderMutexLock lock(&mutex_);
  return problems_.size();
}

std::shared_ptr<const v1::Candidate> CandidateCache::Find(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  const auto it = entries_.find(name);
  if (it == entries_.end()) return nullptr;
  order_.splice(order_.begin(), order_, it->second);
  return *it->second;
}

void CandidateCache::Put(const v1::Candidate& candidate) {
  {
    absl::MutexLock lock(&mutex_);
    if (entries_.contains(candidate.name())) return;
  }
  std::shared_ptr<const v1::Candidate> entry = WithoutContents(candidate);
  absl::MutexLock lock(&mutex_);
  if (entries_.contains(entry->name())) return;
  order_.push_front(std::move(entry));
  entries_.emplace(order_.front()->name(), order_.begin());
  if (entries_.size() > entries_max_) {
    entries_.erase(order_.back()->name());
    order_.pop_back();
  }
}

size_t CandidateCache::size() const {
  absl::MutexLock lock(&mutex_);
  return entries_.size();
}

}  // namespace assay
