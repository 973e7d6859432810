// A pool of std::thread, in plain words of the language, so that ThreadSanitizer can follow every hand-over; and the
// serial backend.
//
// Callers share the pool: at most num_threads() threads, callers included, run chunks at a time.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/parallel/backend.h"

namespace waymark::parallel {
namespace {

struct Job {
  const detail::ChunkBody& body;
  const i64 chunks;
  const u32 mxcsr;
  std::atomic<i64> next{0};
  std::atomic<bool> stop{false};
  int active = 0;            // threads at work; under the pool's lock, like what follows
  std::exception_ptr error{};
  bool open() const { return next.load() < chunks && !stop.load(); }
};

class Pool {
 public:
  void run(Job& job) {
    std::unique_lock lock(mutex_);
    start_workers();
    jobs_.push_back(&job);
    changed_.notify_all();
    changed_.wait(lock, [&] { return !job.open() || running_ < num_threads(); });
    work(job, lock);
    std::erase(jobs_, &job);
    changed_.wait(lock, [&] { return job.active == 0; });
    lock.unlock();
    if (job.error) std::rethrow_exception(job.error);
  }

 private:
  // Takes chunks of the job until none is left. Enters and leaves with the lock held.
  void work(Job& job, std::unique_lock<std::mutex>& lock) {
    ++job.active;
    ++running_;
    lock.unlock();
    std::exception_ptr error;
    {
      const InRegion inside(job.mxcsr);
      while (job.open()) {
        const i64 chunk = job.next.fetch_add(1);
        if (chunk >= job.chunks) break;
        try {
          job.body(chunk);
        } catch (...) {
          error = std::current_exception();
          job.stop = true;
        }
      }
    }
    lock.lock();
    --running_;
    --job.active;
    if (error && !job.error) job.error = error;
    changed_.notify_all();
  }

  void start_workers() {
    while (static_cast<int>(workers_.size()) < num_threads() - 1)
      workers_.emplace_back([this] {
        std::unique_lock lock(mutex_);
        for (;;) {
          Job* job = nullptr;
          changed_.wait(lock, [&] {
            const auto found = std::find_if(jobs_.begin(), jobs_.end(), [](const Job* j) { return j->open(); });
            job = found == jobs_.end() || running_ >= num_threads() ? nullptr : *found;
            return job != nullptr;
          });
          work(*job, lock);
        }
      });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Job*> jobs_;
  std::vector<std::thread> workers_;
  int running_ = 0;
};

void dispatch_threads(i64 chunks, const detail::ChunkBody& body, bool) {
  static Pool* const immortal = new Pool;  // its threads wait for work until the process ends
  Job job{body, chunks, read_mxcsr()};
  immortal->run(job);
}

void dispatch_serial(i64 chunks, const detail::ChunkBody& body, bool) {
  const InRegion inside(read_mxcsr());
  for (i64 c = 0; c < chunks; ++c) body(c);
}

}  // namespace

const Backend kThreads{"threads", dispatch_threads, [](int) {}};
const Backend kSerial{"serial", dispatch_serial, [](int) {}};

}  // namespace waymark::parallel
