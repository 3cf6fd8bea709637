// SPDX-License-Identifier: Apache-2.0
/*
 * A recorded tree out of a tar file, by libarchive, into a private folder. Every path is walked
 * from that folder's descriptor and no step of it may be a link, so that a link in the file cannot
 * carry a later entry out; links themselves must be relative and stay inside.
 */
#include "bench/core/sysroot_tar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MAX_DEPTH 40 /* folders passed by on the way to sys/, each the only one */

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	(void)remove(path);
	return 0;
}

void fb_sysroot_tar_remove(const char *temp)
{
	if (temp)
		nftw(temp, remove_one, 32, FTW_DEPTH | FTW_PHYS);
}

#ifdef FB_HAVE_ARCHIVE
#include <archive.h>
#include <archive_entry.h>

struct unpack {
	const char *file;
	struct archive *a;
	int root; /* the private folder */
	/* The folder of the last entry: tar files hold a folder's files one after the other. */
	int dir;
	char dir_path[PATH_MAX];
	uint64_t bytes;
	unsigned entries;
	struct fb_err *e;
};

static int FB_PRINTF(3, 4) refuse(struct unpack *u, int code, const char *fmt, ...)
{
	char why[384];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	for (char *s = why; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = '?';
	return fb_fail(
		u->e, FB_EXIT_USAGE, code, "cannot use %s as recorded system: %s", u->file, why);
}

/* ---- paths ----------------------------------------------------------------------------------- */

/** Next component of *path. @return its length, 0 at the end */
static size_t next_name(const char **path)
{
	*path += strspn(*path, "/");
	return strcspn(*path, "/");
}

static bool is_dots(const char *name, size_t n)
{
	return n == 2 && name[0] == '.' && name[1] == '.';
}

static bool leads_out(const char *path)
{
	if (*path == '/')
		return true;
	for (size_t n; (n = next_name(&path)); path += n)
		if (is_dots(path, n))
			return true;
	return false;
}

/** May a link at `path` point to `target`? Followed from its folder, it must stay inside. */
static bool link_stays(const char *path, const char *target)
{
	int depth = -1; /* the link's own name is no folder */

	if (*target == '/' || !*target)
		return false;
	for (size_t n; (n = next_name(&path)); path += n)
		if (!(n == 1 && *path == '.'))
			depth++;
	for (size_t n; (n = next_name(&target)); target += n) {
		if (is_dots(target, n))
			depth--;
		else if (!(n == 1 && *target == '.'))
			depth++;
		if (depth < 0)
			return false;
	}
	return true;
}

/**
 * Open the folder that holds the last component of `path`, making what is missing.
 * @param name receives the last component; "" for the private folder itself
 * @return a descriptor, or -errno (-ELOOP, -ENOTDIR: a component is no folder)
 */
static int open_parent(int root, const char *path, char name[NAME_MAX + 1])
{
	int fd = dup(root);
	size_t n = next_name(&path);

	name[0] = '\0';
	while (fd >= 0 && n) {
		const char *next = path + n;
		size_t more = next_name(&next);

		if (n > NAME_MAX)
			break;
		memcpy(name, path, n);
		name[n] = '\0';
		if (!more)
			return fd;
		if (mkdirat(fd, name, 0700) != 0 && errno != EEXIST)
			break;
		int down = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		int err = errno;

		close(fd);
		errno = err;
		fd = down;
		path = next;
		n = more;
	}
	if (fd >= 0 && !n)
		return fd;
	int err = n > NAME_MAX ? ENAMETOOLONG : errno;

	if (fd >= 0)
		close(fd);
	return -err;
}

/** open_parent() of an entry, kept for the next one. @return a descriptor of u's, or -errno */
static int entry_parent(struct unpack *u, const char *path, char name[NAME_MAX + 1])
{
	size_t n = strlen(path);

	while (n > 0 && path[n - 1] == '/')
		n--;
	size_t parent = n;

	while (parent > 0 && path[parent - 1] != '/')
		parent--;
	if (n - parent > NAME_MAX || parent >= sizeof(u->dir_path))
		return -ENAMETOOLONG;
	if (u->dir >= 0 && strlen(u->dir_path) == parent &&
		memcmp(u->dir_path, path, parent) == 0) {
		memcpy(name, path + parent, n - parent);
		name[n - parent] = '\0';
		return u->dir;
	}
	if (u->dir >= 0)
		close(u->dir);
	u->dir = open_parent(u->root, path, name);
	memcpy(u->dir_path, path, parent);
	u->dir_path[parent] = '\0';
	return u->dir;
}

/* ---- entries --------------------------------------------------------------------------------- */

/**
 * tar pads a file of /sys with NULs to the 4096 bytes that the kernel had announced: not of the
 * file. A text alone is cut; configuration space ends with NULs of its own.
 */
static size_t without_padding(const unsigned char *p, size_t n)
{
	size_t text = 0;

	while (text < n && (p[text] >= 0x20 || p[text] == '\n' || p[text] == '\t'))
		text++;
	if (text == 0 || p[text - 1] != '\n')
		return n;
	for (size_t i = text; i < n; i++)
		if (p[i])
			return n;
	return text;
}

static int write_all(int fd, const unsigned char *p, size_t n)
{
	while (n > 0) {
		ssize_t k = write(fd, p, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k < 0 ? -errno : -EIO;
		p += k;
		n -= (size_t)k;
	}
	return 0;
}

static int copy_data(struct unpack *u, int fd, const char *name)
{
	unsigned char buf[65536];
	uint64_t size = 0;

	for (;;) {
		la_ssize_t n = archive_read_data(u->a, buf, sizeof(buf));

		if (n < 0)
			return refuse(u, EINVAL, "%s", archive_error_string(u->a));
		if (n == 0)
			return 0;
		u->bytes += (uint64_t)n;
		size += (uint64_t)n;
		if (size > FB_SYSROOT_TAR_MAX_FILE)
			return refuse(u, EFBIG, "its file %s has more than %llu MiB", name,
				FB_SYSROOT_TAR_MAX_FILE >> 20);
		if (u->bytes > FB_SYSROOT_TAR_MAX_BYTES)
			return refuse(u, EFBIG, "more than %llu MiB unpacked",
				FB_SYSROOT_TAR_MAX_BYTES >> 20);
		size_t len = size == (uint64_t)n && n <= 4096 ? without_padding(buf, (size_t)n)
							      : (size_t)n;
		int rc = write_all(fd, buf, len);

		if (rc < 0)
			return fb_fail(u->e, FB_EXIT_UNMEASURED, rc, "cannot unpack %s: %s",
				u->file, strerror(-rc));
	}
}

static int make_file(struct unpack *u, int dir, const char *name)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dir, name, flags, 0600);

	/* The later of two entries counts, as tar itself has it. */
	if (fd < 0 && errno == EEXIST && unlinkat(dir, name, 0) == 0)
		fd = openat(dir, name, flags, 0600);
	if (fd < 0)
		return refuse(u, EINVAL, "%s is a file and a folder", name);
	int rc = copy_data(u, fd, name);

	close(fd);
	return rc;
}

static int make_hard_link(struct unpack *u, int dir, const char *name, const char *target)
{
	char last[NAME_MAX + 1];

	if (leads_out(target))
		return refuse(u, EINVAL, "its link %s leads out of it", target);
	int from = open_parent(u->root, target, last);

	if (from < 0)
		return refuse(u, EINVAL, "its link to %s leads through no folder", target);
	(void)unlinkat(dir, name, 0);
	/* A target that is not there yet is a damaged file's; what lacks it will say so. */
	(void)linkat(from, last, dir, name, 0);
	close(from);
	return 0;
}

static int make_entry(struct unpack *u, struct archive_entry *entry)
{
	const char *path = archive_entry_pathname(entry);
	const char *hard = archive_entry_hardlink(entry);
	const char *link = archive_entry_symlink(entry);
	mode_t type = archive_entry_filetype(entry);
	char name[NAME_MAX + 1];
	int rc = 0;

	if (++u->entries > FB_SYSROOT_TAR_MAX_ENTRIES)
		return refuse(u, EFBIG, "more than %u entries", FB_SYSROOT_TAR_MAX_ENTRIES);
	if (!path || !*path)
		return refuse(u, EINVAL, "an entry without a name");
	if (leads_out(path))
		return refuse(u, EINVAL, "its entry %s leads out of it", path);
	if (!hard && type != AE_IFDIR && type != AE_IFREG && type != AE_IFLNK)
		return 0; /* devices, sockets and pipes record nothing */
	int dir = entry_parent(u, path, name);

	if (dir < 0)
		return refuse(u, EINVAL, "its entry %s leads through a link or a file", path);
	if (!name[0] || strcmp(name, ".") == 0)
		return 0;
	if (hard) {
		rc = make_hard_link(u, dir, name, hard);
	} else if (type == AE_IFREG) {
		rc = make_file(u, dir, name);
	} else if (type == AE_IFDIR) {
		if (mkdirat(dir, name, 0700) != 0 && errno != EEXIST)
			rc = fb_fail(u->e, FB_EXIT_UNMEASURED, errno, "cannot unpack %s: %s",
				u->file, strerror(errno));
	} else if (link && link_stays(path, link)) {
		/* A link that leads out is left out: it told of the recorded machine nothing. */
		if (symlinkat(link, dir, name) != 0 && errno != EEXIST)
			rc = refuse(u, EINVAL, "its link %s cannot be made", path);
	}
	return rc;
}

static int unpack_all(struct unpack *u)
{
	struct archive_entry *entry;
	int rc = 0;

	u->a = archive_read_new();
	if (!u->a)
		return fb_fail(u->e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", u->file);
	archive_read_support_format_tar(u->a);
	archive_read_support_filter_gzip(u->a);
	archive_read_support_filter_bzip2(u->a);
	archive_read_support_filter_xz(u->a);
	archive_read_support_filter_zstd(u->a);
	if (archive_read_open_filename(u->a, u->file, 65536) != ARCHIVE_OK) {
		rc = refuse(u, EINVAL, "%s", archive_error_string(u->a));
		goto free_archive;
	}
	while (!rc) {
		int k = archive_read_next_header(u->a, &entry);

		if (k == ARCHIVE_EOF)
			break;
		if (k != ARCHIVE_OK && k != ARCHIVE_WARN) {
			rc = refuse(u, EINVAL, "%s",
				archive_error_string(u->a) ? archive_error_string(u->a)
							   : "no tar file");
			break;
		}
		rc = make_entry(u, entry);
	}
	if (!rc && u->entries == 0)
		rc = refuse(u, EINVAL, "it is no tar file, or an empty one");
free_archive:
	if (rc == -EINVAL)
		fb_hint(u->e, "give a recording as a folder or as a tar file (.tar, .tar.gz, "
			      ".tar.bz2, .tar.xz)");
	archive_read_free(u->a);
	return rc;
}

/* ---- the folder that holds sys/ ---------------------------------------------------------------
 */

static bool has(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) &&
	       lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

struct inside {
	int entries, roots;      /* in all; folders with sys/ or proc/ */
	char name[NAME_MAX + 1]; /* the only root, else the first folder */
	bool rdma;               /* one of them is an RDMA device's */
};

/** What a folder holds. */
static void look(const char *dir, struct inside *in)
{
	DIR *d = opendir(dir);

	*in = (struct inside){0};
	if (!d)
		return;
	for (struct dirent *de; (de = readdir(d));) {
		char below[NAME_MAX + 16];

		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		in->entries++;
		snprintf(below, sizeof(below), "%s/ports", de->d_name);
		in->rdma = in->rdma || has(dir, below);
		snprintf(below, sizeof(below), "%s/sys", de->d_name);
		bool root = has(dir, below);

		snprintf(below, sizeof(below), "%s/proc", de->d_name);
		root = root || has(dir, below);
		if ((root && !in->roots++) || (!in->name[0] && has(dir, de->d_name)))
			snprintf(in->name, sizeof(in->name), "%s", de->d_name);
	}
	closedir(d);
}

/** Make temp/tree/below out of `dir`: a file of /sys, or of /sys/class/infiniband, alone. */
static char *move_below(const char *temp, const char *dir, const char *const *below, size_t n)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/tree", temp) >= (int)sizeof(path) ||
		mkdir(path, 0700) != 0)
		return NULL;
	char *top = strdup(path);

	for (size_t i = 0; i < n && top; i++) {
		size_t k = strlen(path);

		if (snprintf(path + k, sizeof(path) - k, "/%s", below[i]) >=
				(int)(sizeof(path) - k) ||
			(i + 1 < n ? mkdir(path, 0700) : rename(dir, path)) != 0) {
			free(top);
			return NULL;
		}
	}
	return top;
}

static char *find_top(const char *temp, const char *inner)
{
	static const char *const sys[] = {"sys"};
	static const char *const rdma[] = {"sys", "class", "infiniband"};
	char path[PATH_MAX];
	struct inside in;

	snprintf(path, sizeof(path), "%s", inner);
	for (int depth = 0; depth < MAX_DEPTH; depth++) {
		if (has(path, "sys") || has(path, "proc"))
			return strdup(path);
		look(path, &in);
		if (in.rdma)
			return move_below(temp, path, rdma, 3);
		if (has(path, "class") && (has(path, "devices") || has(path, "bus")))
			return move_below(temp, path, sys, 1);
		size_t k = strlen(path);

		/* Beside the one recorded tree other things may lie: notes, dumps of CPUID. */
		if ((in.entries != 1 && in.roots != 1) || !in.name[0] ||
			snprintf(path + k, sizeof(path) - k, "/%s", in.name) >=
				(int)(sizeof(path) - k))
			break;
	}
	/* No tree: the folder that tells most of what it is instead. */
	return strdup(path);
}

/**
 * Where to unpack: $TMPDIR; else memory with room for the largest recording, because a tree is
 * thousands of small files that live for a second, which takes seconds on a disk; else /tmp.
 */
static const char *base_folder(void)
{
	const char *dir = getenv("TMPDIR");
	struct statvfs fs;

	if (dir && *dir == '/')
		return dir;
	if (access("/dev/shm", W_OK | X_OK) == 0 && statvfs("/dev/shm", &fs) == 0 &&
		fs.f_bavail * fs.f_frsize >=
			FB_SYSROOT_TAR_MAX_BYTES + FB_SYSROOT_TAR_MAX_ENTRIES * 4096ull &&
		fs.f_favail >= FB_SYSROOT_TAR_MAX_ENTRIES)
		return "/dev/shm";
	return "/tmp";
}

bool fb_sysroot_tar_supported(void)
{
	return true;
}

int fb_sysroot_tar_unpack(const char *file, char **temp, char **top, struct fb_err *e)
{
	const char *base = base_folder();
	struct unpack u = {.file = file, .root = -1, .dir = -1, .e = e};
	char path[PATH_MAX], inner[PATH_MAX];
	int rc;

	*temp = *top = NULL;
	if (snprintf(path, sizeof(path), "%s/fabricbench-recording-XXXXXX", base) >=
		(int)sizeof(path) - 16)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENAMETOOLONG, "%s: path too long", base);
	if (!mkdtemp(path)) {
		rc = fb_fail(e, FB_EXIT_UNMEASURED, errno, "cannot make a folder in %s: %s", base,
			strerror(errno));
		fb_hint(e, "set TMPDIR to a folder that can be written, or unpack %s", file);
		return rc;
	}
	snprintf(inner, sizeof(inner), "%.*s/unpacked", (int)sizeof(inner) - 16, path);
	if (mkdir(inner, 0700) != 0 ||
		(u.root = open(inner, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		rc = fb_fail(
			e, FB_EXIT_UNMEASURED, errno, "cannot use %s: %s", inner, strerror(errno));
		goto remove_temp;
	}
	rc = unpack_all(&u);
	if (u.dir >= 0)
		close(u.dir);
	close(u.root);
	if (rc)
		goto remove_temp;
	*temp = strdup(path);
	*top = find_top(path, inner);
	if (*temp && *top)
		return 0;
	rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory to unpack %s", file);
remove_temp:
	free(*temp);
	free(*top);
	*temp = *top = NULL;
	fb_sysroot_tar_remove(path);
	return rc;
}

#else

bool fb_sysroot_tar_supported(void)
{
	return false;
}

int fb_sysroot_tar_unpack(const char *file, char **temp, char **top, struct fb_err *e)
{
	*temp = *top = NULL;
	int rc = fb_fail(e, FB_EXIT_USAGE, ENOTSUP,
		"cannot use %s as recorded system: this program was built without libarchive",
		file);

	fb_hint(e, "unpack it (mkdir recording; tar -xf %s -C recording) and give its top folder",
		file);
	return rc;
}

#endif
